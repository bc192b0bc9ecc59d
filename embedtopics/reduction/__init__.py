"""Neighbor graph -> coordinates: one fuzzy graph, laid out for clustering and for the map."""
