"""Measurements of embedtopics beside other systems; ``python benchmarks/run.py --help``."""
