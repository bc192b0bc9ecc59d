"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from embedtopics._utils.public import attach

MOVED = {
    "neighbors": "et.probing.word_neighbors",
    "pooled": "states.pooled()",
    "read_conllu": "et.probing.read_treebank",
    "read_token_table": "et.probing.read_treebank",
    "sentence_task": "et.probing.make_task",
    "text_task": "et.probing.make_task",
    "token_task": "et.probing.make_task",
    "random_states": "et.probing.hidden_states(encoder, texts, random_weights=True)",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
