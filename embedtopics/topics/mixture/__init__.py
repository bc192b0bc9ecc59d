"""Several topics in one text: by windows of its words, and by its passages."""
