"""The command line: one thin file a command over the Python API."""
