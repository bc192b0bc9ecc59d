"""The shape of the spaces that an encoder's layers span."""
