"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""

from embedtopics._utils.public import places_of

__getattr__ = places_of(__name__, {"Corpus": "et.Corpus"})
