"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.probing._cka import cka as cka
    from embedtopics.probing._extract import attention as attention
    from embedtopics.probing._extract import hidden_states as hidden_states
    from embedtopics.probing._extract import random_states as random_states
    from embedtopics.probing._geometry import contextualization as contextualization
    from embedtopics.probing._layers import pooled as pooled
    from embedtopics.probing._sentence_tasks import sentence_task as sentence_task
    from embedtopics.probing._storage import open_states as open_states
    from embedtopics.probing._tasks import pair_task as pair_task
    from embedtopics.probing._tasks import text_task as text_task
    from embedtopics.probing._tasks import token_task as token_task
    from embedtopics.probing._treebanks import read_conllu as read_conllu
    from embedtopics.probing._treebanks import read_token_table as read_token_table
    from embedtopics.probing.probes._probe import probe as probe
    from embedtopics.probing.words._map import word_map as word_map
    from embedtopics.probing.words._senses import sense_separation as sense_separation
    from embedtopics.probing.words._senses import senses as senses
    from embedtopics.probing.words._uses import neighbors as neighbors

__getattr__, __dir__, __all__ = attach(__name__, __file__)
