"""Probes: what can be read from the vectors of each layer, beside baselines and controls."""
