"""Results that grow: added documents, combined results, and matching topics."""
