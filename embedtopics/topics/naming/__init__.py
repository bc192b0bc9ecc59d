"""Keywords by other methods than class-TF-IDF, and names from a language model."""
