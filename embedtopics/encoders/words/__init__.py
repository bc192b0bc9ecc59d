"""Encoders that count words or average their vectors."""
