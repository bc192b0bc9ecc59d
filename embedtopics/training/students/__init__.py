"""Static students: a table of token vectors that learns from a transformer's vectors of texts."""
