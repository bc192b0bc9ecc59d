"""Words of a segment: BM25 with the statistics of the whole collection."""
