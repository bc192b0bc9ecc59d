"""Nearest vectors of a segment: exact, or by a FAISS index whose recall was measured."""
