"""Constraints on the topics of a fit."""
