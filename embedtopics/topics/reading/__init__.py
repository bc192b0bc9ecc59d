"""Search for topics, documents to read, key words in context, and export of tables."""
