"""Texts and labels -> terms of topics: counts, weights, keywords, representative documents.

Documents are tokenized once. Everything else is counted from the word ids.
"""
