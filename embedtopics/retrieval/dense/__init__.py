"""Nearest vectors of a segment: exact, or by a FAISS index of measured recall."""
