"""The documents of a collection, their metadata and its segments: what is on disk, and when."""
