"""Learning curves and curves over the number of labels, read for the user."""
