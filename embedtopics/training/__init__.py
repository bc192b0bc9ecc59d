"""Train an encoder on examples, and find out whether it became a better one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.training._compare import compare_before_after as compare_before_after
    from embedtopics.training._examples import Examples as Examples
    from embedtopics.training._examples import read_examples as read_examples
    from embedtopics.training._fit import fit as fit
    from embedtopics.training._fit import fit_distilled as fit_distilled
    from embedtopics.training._fit import fit_nli as fit_nli
    from embedtopics.training._fit import fit_pairs as fit_pairs
    from embedtopics.training._fit import fit_sts as fit_sts
    from embedtopics.training._fit import fit_triplets as fit_triplets
    from embedtopics.training._fit import fit_unsupervised as fit_unsupervised
    from embedtopics.training._pairs import make_pairs as make_pairs
    from embedtopics.training._pairs import mine_hard_negatives as mine_hard_negatives
    from embedtopics.training._report import read_report as read_report
    from embedtopics.training._settings import TrainingSettings as TrainingSettings
    from embedtopics.training._split import overlap as overlap
    from embedtopics.training._split import split as split
    from embedtopics.training._student import fit_static_student as fit_static_student

__getattr__, __dir__, __all__ = attach(__name__, __file__)
