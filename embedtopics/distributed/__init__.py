"""The same work in shards: on a pool of processes, or on Ray; resumable after any kill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.distributed._index import build_index as build_index
    from embedtopics.distributed._jobs import AssignTopics as AssignTopics
    from embedtopics.distributed._jobs import ClassifyTexts as ClassifyTexts
    from embedtopics.distributed._jobs import CountTopics as CountTopics
    from embedtopics.distributed._jobs import EmbedTexts as EmbedTexts
    from embedtopics.distributed._manifest import make_manifest as make_manifest
    from embedtopics.distributed._run import plan_batch as plan_batch
    from embedtopics.distributed._run import read_counts as read_counts
    from embedtopics.distributed._run import run_batch as run_batch
    from embedtopics.distributed.results import BatchPlan as BatchPlan
    from embedtopics.distributed.results import BatchReport as BatchReport
    from embedtopics.distributed.results import Columns as Columns
    from embedtopics.distributed.results import Manifest as Manifest
    from embedtopics.distributed.results import TopicCounts as TopicCounts

__getattr__, __dir__, __all__ = attach(__name__, __file__)
