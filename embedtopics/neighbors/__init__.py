"""The neighbor graph of embeddings, which serves every later stage."""
