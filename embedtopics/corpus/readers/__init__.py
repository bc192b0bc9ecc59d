"""Readers of files, one module for each format."""
