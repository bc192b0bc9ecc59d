"""How it is learned: the trainer of sentence-transformers, made faster, resumable and guarded."""
