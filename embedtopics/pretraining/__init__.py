"""Go on pre-training a language model on one's own texts, and find out whether it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.pretraining._masking import RandomMasking as RandomMasking
    from embedtopics.pretraining._masking import SelectiveMasking as SelectiveMasking
    from embedtopics.pretraining._masking import SpanMasking as SpanMasking
    from embedtopics.pretraining._masking import WholeWordMasking as WholeWordMasking
    from embedtopics.pretraining._pretrain import pretrain as pretrain

__getattr__, __dir__, __all__ = attach(__name__, __file__)
