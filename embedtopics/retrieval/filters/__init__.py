"""Filters on metadata: an expression, checked against the columns, then SQL."""
