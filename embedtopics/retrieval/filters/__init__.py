"""Filters on metadata: an expression or a mapping, checked against the columns, then SQL."""
