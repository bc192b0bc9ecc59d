"""Edits of a result, each a new result with one more line in its history."""
