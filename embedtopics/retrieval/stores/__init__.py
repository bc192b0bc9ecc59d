"""The collection in other engines: Parquet, and the stores that speak `VectorStore`."""
