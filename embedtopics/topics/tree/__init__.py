"""Topics within topics: merged by similarity, drawn as text, and read at any level."""
