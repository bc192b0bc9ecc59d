"""Looks inside an encoder: vectors of words at every layer, and what can be read from them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.probing.attending import attention
    from embedtopics.probing.averaging import pooled
    from embedtopics.probing.combining import combine
    from embedtopics.probing.extracting import hidden_states
    from embedtopics.probing.geometry.contextual import contextualization
    from embedtopics.probing.geometry.kernels import cka
    from embedtopics.probing.geometry.lengths import norms
    from embedtopics.probing.mapping import word_map
    from embedtopics.probing.probes.baselines import control_labels
    from embedtopics.probing.probes.features import pair_features
    from embedtopics.probing.probes.running import probe, probe_vectors
    from embedtopics.probing.probes.structural import structural_probe
    from embedtopics.probing.storing import open_states
    from embedtopics.probing.tasks.conllu import read_conllu
    from embedtopics.probing.tasks.files import pair_task, text_task
    from embedtopics.probing.tasks.sentences import SENTENCE_TASKS, sentence_task
    from embedtopics.probing.tasks.tables import read_token_table
    from embedtopics.probing.tasks.words import token_task
    from embedtopics.probing.twins import random_twin
    from embedtopics.probing.words.change import semantic_change
    from embedtopics.probing.words.clusters import senses
    from embedtopics.probing.words.nearest import neighbor_table, neighbors, static_neighbors
    from embedtopics.probing.words.separation import sense_separation

__all__ = [
    "SENTENCE_TASKS",
    "attention",
    "cka",
    "combine",
    "contextualization",
    "control_labels",
    "hidden_states",
    "neighbor_table",
    "neighbors",
    "norms",
    "open_states",
    "pair_features",
    "pair_task",
    "pooled",
    "probe",
    "probe_vectors",
    "random_twin",
    "read_conllu",
    "read_token_table",
    "semantic_change",
    "sense_separation",
    "senses",
    "sentence_task",
    "static_neighbors",
    "structural_probe",
    "text_task",
    "token_task",
    "word_map",
]

# torch is loaded when a text is read or a probe is trained.
_HOME = {
    "SENTENCE_TASKS": "tasks.sentences",
    "attention": "attending",
    "cka": "geometry.kernels",
    "combine": "combining",
    "contextualization": "geometry.contextual",
    "control_labels": "probes.baselines",
    "hidden_states": "extracting",
    "neighbor_table": "words.nearest",
    "neighbors": "words.nearest",
    "norms": "geometry.lengths",
    "open_states": "storing",
    "pair_features": "probes.features",
    "pair_task": "tasks.files",
    "pooled": "averaging",
    "probe": "probes.running",
    "probe_vectors": "probes.running",
    "random_twin": "twins",
    "read_conllu": "tasks.conllu",
    "read_token_table": "tasks.tables",
    "semantic_change": "words.change",
    "sense_separation": "words.separation",
    "senses": "words.clusters",
    "sentence_task": "tasks.sentences",
    "static_neighbors": "words.nearest",
    "structural_probe": "probes.structural",
    "text_task": "tasks.files",
    "token_task": "tasks.words",
    "word_map": "mapping",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
