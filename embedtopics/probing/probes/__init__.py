"""Probes of the vectors of each layer, with baselines and controls."""
