"""Words in their contexts: neighbours, senses, and change between groups of texts."""
