"""Coordinates -> labels: density clusters, numbered from the largest down."""
