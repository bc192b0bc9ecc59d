"""Filters on columns: which rows of a table, or documents of an index, pass."""
