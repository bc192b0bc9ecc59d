"""Pairs to learn from where nobody has labelled any: out of a corpus, and negatives for pairs."""
