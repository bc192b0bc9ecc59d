"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""
