"""Finding topics, reading their documents, seeing how words are used, and taking tables away."""
