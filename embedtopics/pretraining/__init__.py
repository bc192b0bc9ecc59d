"""Further pre-training of encoders on texts of one's own: vocabulary, masking, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.pretraining._masking import RandomMasking as RandomMasking
    from embedtopics.pretraining._masking import SelectiveMasking as SelectiveMasking
    from embedtopics.pretraining._masking import SpanMasking as SpanMasking
    from embedtopics.pretraining._masking import WholeWordMasking as WholeWordMasking
    from embedtopics.pretraining._pretrain import pretrain as pretrain
    from embedtopics.pretraining._report import tokenizer_report as tokenizer_report
    from embedtopics.pretraining._tokenizers import new_encoder as new_encoder
    from embedtopics.pretraining._tokenizers import train_tokenizer as train_tokenizer
    from embedtopics.pretraining._vocabulary import extend_vocabulary as extend_vocabulary

__getattr__, __dir__, __all__ = attach(__name__, __file__)
