"""Embeddings -> the one neighbor graph that serves every later stage."""
