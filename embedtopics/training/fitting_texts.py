"""Training an encoder on texts alone, or on what a teacher makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from embedtopics._files import check_output_folder
from embedtopics.errors import InputError
from embedtopics.results import TrainingReport
from embedtopics.training.runs import Held, run_training
from embedtopics.training.settings import Options

__all__ = ["fit_distilled", "fit_unsupervised"]


def fit_unsupervised(
    encoder: Any,
    texts: Any,
    *,
    out: str | os.PathLike[str],
    method: str = "simcse",
    validation: Any = None,
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train an encoder on a bare corpus.

    What is learned is no task that anybody has: give `test` or `corpus` and `classes`, to see
    whether it helped.

    Parameters
    ----------
    encoder, out, validation, test, general, corpus, classes, allow_overlap, resume, **options
        As for `fit_nli`.
    texts : Examples of kind "texts", or what `read_examples` takes
    method : {"simcse", "tsdae"}
        "simcse": a text is nearest to itself, seen with other dropout (Gao et al., 2021). "tsdae":
        a text can be told from the vector of what is left when most of its words are deleted
        (Wang et al., 2021).

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`; InputError also if the model has no dropout, or no decoder, that the method
        needs.
    """
    from embedtopics.training.objectives.unsupervised import simcse, tsdae

    ways = {"simcse": lambda some, _: simcse(some), "tsdae": tsdae}
    if method not in ways:
        raise InputError(f"expected method to be one of {', '.join(ways)}; got {method!r}")
    held = Held(validation, test, general, corpus, classes, allow_overlap)
    return run_training(encoder, texts, "texts", ways[method], held, out, resume, options)


def fit_distilled(
    student: Any,
    teacher: Any,
    texts: Sequence[str],
    *,
    out: str | os.PathLike[str],
    translations: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    keep_layers: int | Sequence[int] | None = None,
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    resume: bool = True,
    **options: Unpack[Options],
) -> TrainingReport:
    """Train a student to give the vectors of a teacher: a smaller one, or one of more languages.

    Parameters
    ----------
    student : str, path, SentenceEncoder or StaticEncoder
        To start from; it is not changed.
    teacher : str, path or Encoder
    texts : sequence of str
        That both encode; they should be of the kind that the student will see.
    out, test, general, corpus, classes, resume, **options
        As for `fit_nli`. A tenth of the texts is held out for validation.
    translations : sequence of str, or mapping of str to such, optional
        Of each text, into one language, or several by their names: the student gives them the
        vector that the teacher gives the text (Reimers and Gurevych, 2020).
    keep_layers : int or sequence of int, optional
        Make the student smaller first: keep so many of its layers, spread evenly, or those of
        these numbers.

    Returns
    -------
    TrainingReport

    Raises
    ------
    InputError, ModelLoadError, MissingExtraError
        As `fit_nli`.
    """
    from embedtopics.training.objectives.distilled import taught, teach
    from embedtopics.training.objectives.layers import fewer_layers
    from embedtopics.training.objectives.trainee import output_kind, trainee_of
    from embedtopics.training.settings import settings_from

    # What can be wrong is found before the teacher encodes for minutes.
    settings = settings_from(options)
    learner = student if keep_layers is None else fewer_layers(student, keep_layers)
    trainee = trainee_of(learner, settings)
    check_output_folder(Path(out).expanduser(), output_kind(trainee))
    examples = teach(teacher, texts, translations)
    held = Held(None, test, general, corpus, classes)
    return run_training(
        trainee, examples, "taught",
        lambda some, model: taught(some, n_dimensions=model.n_dimensions), held, out, resume,
        options,
    )  # fmt: skip
