"""Loops are compiled before the tests, lest the first one be called slow."""

from embedtopics.terms import _kernels

assert _kernels.number_pieces and _kernels.number_ngrams
