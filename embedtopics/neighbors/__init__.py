"""Embeddings -> the one neighbour graph that serves every later stage."""
