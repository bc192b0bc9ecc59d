"""Topics over time and over groups, and what their share depends on."""
