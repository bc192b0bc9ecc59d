"""The topic model, and the questions that a fitted result answers."""

from embedtopics._utils.public import attach

MOVED = {
    "TopicModel": "et.TopicModel",
    "load_result": "et.TopicResult.load",
    "save_result": "result.save(folder)",
    "without_texts": "result.save(folder, texts=False)",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
