"""What is learned: the losses of sentence-transformers, and the model that they train."""
