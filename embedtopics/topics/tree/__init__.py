"""Topics within topics: merged by likeness, drawn as text, and read at any level."""
