"""Results that grow: added documents, and samples."""
