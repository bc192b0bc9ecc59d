"""Results that grow: documents added, results merged, and topics followed between results."""
