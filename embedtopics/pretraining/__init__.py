"""Further pre-training of encoders on your texts: vocabulary, masking, and the verdict."""

from embedtopics._utils.public import attach

MOVED = {
    "RandomMasking": 'et.pretraining.pretrain(..., masking="random", masked_share=0.15)',
    "SpanMasking": 'et.pretraining.pretrain(..., masking="span", masked_share=0.15)',
    "WholeWordMasking": 'et.pretraining.pretrain(..., masking="whole_word", masked_share=0.15)',
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
