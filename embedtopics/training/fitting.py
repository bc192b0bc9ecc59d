"""Training an encoder on examples: one function for each kind of example."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from embedtopics.errors import InputError
from embedtopics.results import TrainingReport
from embedtopics.training.examples import Examples
from embedtopics.training.runs import Held, MakeObjective, run_training
from embedtopics.training.settings import Options

__all__ = ["fit_labelled_pairs", "fit_nli", "fit_pairs", "fit_sts", "fit_triplets"]


def fit_nli(
    encoder: Any,
    train: Any,
    *,
    out: str | os.PathLike[str],
    validation: Any = None,
    objective: str = "ranking",
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on inference pairs: premise, hypothesis, and how the one bears on the other.

    Sentences are encoded one by one ever after, and compared by a dot product (Reimers and
    Gurevych, 2019, "Sentence-BERT").

    Parameters
    ----------
    encoder : str, path, SentenceEncoder, StaticEncoder or CachedEncoder
        To start from; it is not changed.
    train : Examples, or what `read_examples` takes
        Of kind "nli".
    out : path
        Folder for the tuned encoder, its report and its card. While training goes on,
        ``<out>.training`` holds checkpoints.
    validation : Examples, or what `read_examples` takes, optional
        Decides which weights are kept. Without, a tenth of the training examples is held out, no
        text of which is learned from.
    objective : {"ranking", "softmax"}
        "ranking": a premise is nearest to what it entails, among the other sentences of the batch
        and what contradicts it. "softmax": the relation can be told from u, v and |u - v|, as
        in the paper.
    test, general : Examples, what `read_examples` takes, or mapping of name to such, optional
        Held-out examples of the task, and of another field; see `compare_before_after`. What is
        not read yet is read as `train` is, and as pairs with scores.
    corpus, classes : optional
        Texts of one's own, and perhaps classes for them; see `compare_before_after`.
    allow_overlap : bool
        Whether examples may be both learned from, or validated on, and measured on; otherwise that
        is refused.
    resume : bool
        Go on from a checkpoint that the same run left in ``<out>.training``, if there is one. The
        final weights are those of a run that was not interrupted: on a CPU to the last bit, on a
        GPU as far as its sums come out alike. False begins anew.
    **options
        Fields of `TrainingSettings`, such as ``epochs=1``.

    Returns
    -------
    TrainingReport
        Also written to `out`.

    Raises
    ------
    InputError
        If examples, settings or folder cannot be used, or examples are both learned from, or
        validated on, and measured on.
    ModelLoadError
        If the encoder cannot be loaded.
    MissingExtraError
        Without what training needs: ``pip install "embedtopics[train]"``.

    Examples
    --------
    >>> report = fit_nli(  # doctest: +SKIP
    ...     "all-MiniLM-L6-v2", "pairs.jsonl", out="my-encoder", epochs=1
    ... )
    >>> report.diagnosis.verdict  # doctest: +SKIP
    'just right'
    """
    from embedtopics.training.objectives.supervised import nli_ranking, nli_softmax

    make = _chosen(
        objective,
        {
            "ranking": lambda some, _: nli_ranking(some),
            "softmax": lambda some, _: nli_softmax(some),
        },
    )
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    return run_training(encoder, train, "nli", make, held, out, resume, options)


def fit_sts(
    encoder: Any,
    train: Any,
    *,
    out: str | os.PathLike[str],
    validation: Any = None,
    objective: str = "cosine",
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on pairs of texts with a score of how alike they are.

    Parameters
    ----------
    encoder, out, validation, test, general, corpus, classes, allow_overlap, resume, **options
        As for `fit_nli`.
    train : Examples, or what `read_examples` takes
        Of kind "graded".
    objective : {"cosine", "cosent"}
        "cosine": the cosine is the score. "cosent": pairs with a higher score have a higher cosine,
        for scores of which only the order can be trusted.

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`.
    """
    from embedtopics.training.objectives.supervised import graded_cosent, graded_cosine

    make = _chosen(
        objective,
        {
            "cosine": lambda some, _: graded_cosine(some),
            "cosent": lambda some, _: graded_cosent(some),
        },
    )
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    return run_training(encoder, train, "graded", make, held, out, resume, options)


def fit_pairs(
    encoder: Any,
    train: Any,
    *,
    out: str | os.PathLike[str],
    validation: Any = None,
    both_ways: bool = True,
    scale: float = 20.0,
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on texts that belong together, such as title and abstract.

    Each is to be found among the partners of the others in its batch: larger batches are harder,
    and teach more.

    Parameters
    ----------
    encoder, out, validation, test, general, corpus, classes, allow_overlap, resume, **options
        As for `fit_nli`.
    train : Examples, or what `read_examples` takes
        Of kind "pairs", or "triplets" for pairs with hard negatives.
    both_ways : bool
        Whether each text of a pair is to be found from the other.
    scale : float
        Factor of the cosines before the softmax. A large one makes the nearest wrong texts count
        most, and tells texts of one subject apart; a small one keeps them together (Wang and Liu
        2021, "Understanding the behaviour of contrastive loss").

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`.
    """
    from embedtopics.training.objectives.supervised import pairs_ranking

    kind = "triplets" if isinstance(train, Examples) and train.kind == "triplets" else "pairs"
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    return run_training(
        encoder, train, kind,
        lambda some, _: pairs_ranking(some, scale=scale, both_ways=both_ways),
        held, out, resume, options,
    )  # fmt: skip


def fit_triplets(
    encoder: Any,
    train: Any,
    *,
    out: str | os.PathLike[str],
    validation: Any = None,
    objective: str = "ranking",
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on triplets: an anchor, a text nearer to it, and texts farther from it.

    Parameters
    ----------
    encoder, out, validation, test, general, corpus, classes, allow_overlap, resume, **options
        As for `fit_nli`.
    train : Examples, or what `read_examples` takes
        Of kind "triplets".
    objective : {"ranking", "margin"}
        "ranking": nearer than the negatives and than the texts of the rest of the batch.
        "margin": nearer than the negative, by a margin (Reimers and Gurevych, 2019).

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`.
    """
    from embedtopics.training.objectives.supervised import triplet

    ways: dict[str, MakeObjective] = {
        "ranking": lambda some, _: triplet(some, ranking=True),
        "margin": lambda some, _: triplet(some, ranking=False),
    }
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    make = _chosen(objective, ways)
    return run_training(encoder, train, "triplets", make, held, out, resume, options)


def fit_labelled_pairs(
    encoder: Any,
    train: Any,
    *,
    out: str | os.PathLike[str],
    validation: Any = None,
    objective: str = "online",
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on pairs that are labelled as belonging together (1) or not (0).

    Parameters
    ----------
    encoder, out, validation, test, general, corpus, classes, allow_overlap, resume, **options
        As for `fit_nli`.
    train : Examples, or what `read_examples` takes
        Of kind "binary".
    objective : {"online", "contrastive"}
        "contrastive" learns from all pairs, "online" from the hard ones of each batch alone.

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`.
    """
    from embedtopics.training.objectives.supervised import contrastive

    ways: dict[str, MakeObjective] = {
        "online": lambda some, _: contrastive(some, online=True),
        "contrastive": lambda some, _: contrastive(some, online=False),
    }
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    make = _chosen(objective, ways)
    return run_training(encoder, train, "binary", make, held, out, resume, options)


def _chosen(name: str, ways: Mapping[str, MakeObjective]) -> MakeObjective:
    if name not in ways:
        raise InputError(f"expected objective to be one of {', '.join(ways)}; got {name!r}")
    return ways[name]
