"""Makes a better encoder for a corpus, and says whether it became one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.training.card import model_card
    from embedtopics.training.curves.labels import fit_label_curve, label_curve
    from embedtopics.training.curves.reading import read_curves
    from embedtopics.training.effects.comparing import compare_before_after
    from embedtopics.training.effects.tables import change_table
    from embedtopics.training.examples import Examples
    from embedtopics.training.fitting import (
        fit_labelled_pairs,
        fit_nli,
        fit_pairs,
        fit_sts,
        fit_triplets,
    )
    from embedtopics.training.fitting_texts import fit_distilled, fit_unsupervised
    from embedtopics.training.objectives.distilled import teach
    from embedtopics.training.objectives.layers import fewer_layers
    from embedtopics.training.overlaps import (
        overlap,
        refuse_overlap,
        without_examples_of,
        without_sentences_of,
    )
    from embedtopics.training.pairing.between import citation_pairs, duplicate_pairs, group_pairs
    from embedtopics.training.pairing.hard_negatives import mine_hard_negatives
    from embedtopics.training.pairing.within import sentence_pairs, title_pairs
    from embedtopics.training.reading import read_examples
    from embedtopics.training.report_files import read_report, write_report
    from embedtopics.training.settings import TrainingSettings
    from embedtopics.training.splitting import require_size, split
    from embedtopics.training.students.fitting import StudentResult, fit_static_student
    from embedtopics.training.students.settings import StudentSettings

__all__ = [
    "Examples",
    "StudentResult",
    "StudentSettings",
    "TrainingSettings",
    "change_table",
    "citation_pairs",
    "compare_before_after",
    "duplicate_pairs",
    "fewer_layers",
    "fit_distilled",
    "fit_label_curve",
    "fit_labelled_pairs",
    "fit_nli",
    "fit_pairs",
    "fit_static_student",
    "fit_sts",
    "fit_triplets",
    "fit_unsupervised",
    "group_pairs",
    "label_curve",
    "mine_hard_negatives",
    "model_card",
    "overlap",
    "read_curves",
    "read_examples",
    "read_report",
    "refuse_overlap",
    "require_size",
    "sentence_pairs",
    "split",
    "teach",
    "title_pairs",
    "without_examples_of",
    "without_sentences_of",
    "write_report",
]

# torch and the trainer are loaded when something is trained.
_HOME = {
    "Examples": "examples",
    "StudentResult": "students.fitting",
    "StudentSettings": "students.settings",
    "TrainingSettings": "settings",
    "change_table": "effects.tables",
    "citation_pairs": "pairing.between",
    "compare_before_after": "effects.comparing",
    "duplicate_pairs": "pairing.between",
    "fewer_layers": "objectives.layers",
    "fit_distilled": "fitting_texts",
    "fit_label_curve": "curves.labels",
    "fit_labelled_pairs": "fitting",
    "fit_nli": "fitting",
    "fit_pairs": "fitting",
    "fit_static_student": "students.fitting",
    "fit_sts": "fitting",
    "fit_triplets": "fitting",
    "fit_unsupervised": "fitting_texts",
    "group_pairs": "pairing.between",
    "label_curve": "curves.labels",
    "mine_hard_negatives": "pairing.hard_negatives",
    "model_card": "card",
    "overlap": "overlaps",
    "read_curves": "curves.reading",
    "read_examples": "reading",
    "read_report": "report_files",
    "refuse_overlap": "overlaps",
    "require_size": "splitting",
    "sentence_pairs": "pairing.within",
    "split": "splitting",
    "teach": "objectives.distilled",
    "title_pairs": "pairing.within",
    "without_examples_of": "overlaps",
    "without_sentences_of": "overlaps",
    "write_report": "report_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
