"""Static students: a table of token vectors, learned from a transformer's vectors of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.decisions import Decision, counted
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._encoder import KIND, StaticEncoder
from embedtopics.encoders.static._student import (
    Gathered,
    Student,
    StudentData,
    gather,
    learn_student,
)
from embedtopics.encoders.static._student_table import Learned, StudentSettings, student_vectors
from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.training._compare import judge
from embedtopics.training._curves import read_curves
from embedtopics.training._figures import Figure, compare_scores, mean
from embedtopics.training._report import write_report
from embedtopics.training.results import Change, StudentReport
from embedtopics.training.trainer._checkpoints import refuse_finished

N_RESAMPLES = 1000
OPTIMISTIC = "These texts also chose the step that was kept: the figure after is a little high."


@dataclass(frozen=True, eq=False)
class StudentResult:
    """A static student with its report; it can be used as an encoder."""

    encoder: StaticEncoder
    report: StudentReport

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector per text; see `StaticEncoder.encode`."""
        vectors: FloatArray = self.encoder.encode(texts, show_progress=show_progress)
        return vectors

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the encoder in model2vec's format, with its report and a model card."""
        path = Path(folder).expanduser()
        self.encoder.save(path)
        write_report(self.report, path)


def fit_static_student(
    teacher: Any,
    texts: Any,
    *,
    general: Any = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    cached: bool = True,
    show_progress: bool | None = None,
    **options: Any,
) -> StudentResult:
    """Learn a static encoder, a table of token vectors, from a transformer's vectors of texts.

    A static encoder reads tens of thousands of texts per second. `distill` uses the teacher's
    vectors of single tokens. A student learns from the teacher's vectors of whole texts, and its
    vectors are nearer to them. Frequent words that the teacher's tokenizer splits, and frequent
    phrases such as "neural network", get separate vectors. The teacher encodes each text once.

    A student learns from all its texts, including the validation texts. Leave test texts out of
    `texts` and `general`; otherwise test scores are too high.

    Parameters
    ----------
    teacher : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Its checkpoint needs a tokenizer.json. ``SentenceEncoder(precision="int8")`` is
        twice as fast on a CPU.
    texts : Corpus, or what `Corpus.of` takes
        A few thousand texts help; a hundred thousand are better.
    general : the same, optional
        Other texts to learn from, such as sentences of an encyclopedia. Without them, the student
        knows only the words of its corpus.
    out : path, optional
        Folder to save the student in, in model2vec's format, with its report and model card.
    overwrite : bool
        Replace a finished encoder in `out`.
    cached : bool
        Whether to cache the vectors of a teacher given by name; see `CachedEncoder`.
    show_progress : bool, optional
        None shows progress bars in a terminal or notebook.
    **options
        dimensions, epochs, random_state.

    Returns
    -------
    StudentResult
        The encoder, and a report with the learning curves, their verdict, and the agreement with
        the teacher. The same texts in any order, settings and versions give the same bits.

    Raises
    ------
    InputError
        If an option is bad, there are too few texts, or the teacher has no fast tokenizer.
    ModelLoadError
        If the teacher cannot be loaded.

    References
    ----------
    S. Tulkens and T. van Dongen, "Model2Vec: fast state-of-the-art static embeddings", 2024, and
    its Tokenlearn, which fits token means to a teacher's vectors too.

    Examples
    --------
    >>> student = fit_static_student("all-MiniLM-L6-v2", titles)  # doctest: +SKIP
    >>> student.save("minilm-of-titles")  # doctest: +SKIP
    """
    settings = StudentSettings(**options)
    if out is not None:
        refuse_finished(out, overwrite)
        check_output_folder(Path(out).expanduser(), KIND)
    encoder = resolve_exact(teacher, cached=cached)
    gathered = gather(texts, general, settings)
    name, transformer = encoder.name, encoder.transformer
    # Others need only the last part of a folder's path; on the hub, the owner belongs to the name.
    if transformer is None or transformer.source == "path":
        name = Path(name).name
    student = learn_student(encoder, gathered, settings, name=name, show_progress=show_progress)
    report = _report(name, gathered, settings, student)
    made_from: dict[str, Any] = {
        "method": "static student",
        "encoder": report.teacher,
        "encoder_fingerprint": encoder.fingerprint,
    }
    for name in (
        "n_texts", "n_general", "n_words", "n_phrases", "dimensions", "explained_variance",
        "n_steps", "best_step",
    ):  # fmt: skip
        made_from[name] = getattr(report, name)
    made_from |= {"agreement": round(report.agreement.after, 4), "settings": report.settings}
    result = StudentResult(student.encoder.with_record(made_from), report)
    if out is not None:
        result.save(out)
    return result


def _report(
    teacher: str, gathered: Gathered, settings: StudentSettings, student: Student
) -> StudentReport:
    material, learned = student.data, student.learned
    words, phrases = student.words, student.phrases
    agreement, finding = _changes(material, learned, settings.random_state)
    n_corpus = int((gathered.training < gathered.n_corpus).sum())
    n_general, n_validation = len(gathered.training) - n_corpus, len(material.validation.targets)
    data: dict[str, Any] = {"texts": gathered.sources[0], "n_texts": n_corpus}
    if gathered.sources[1:]:
        data |= {"general": gathered.sources[1], "n_general": n_general}
    data |= {
        "n_validation": n_validation,
        "n_words_added": len(words),
        "n_phrases_added": len(phrases),
    }
    return StudentReport(
        teacher=teacher,
        dimensions=int(learned.table.shape[1]),
        explained_variance=round(material.explained, 4),
        n_texts=n_corpus,
        n_general=n_general,
        n_validation=n_validation,
        n_tokens=len(learned.table),
        n_words=len(words),
        n_phrases=len(phrases),
        words=words,
        phrases=phrases,
        curves=learned.curves,
        diagnosis=read_curves(learned.curves),
        agreement=agreement,
        finding=finding,
        best_step=learned.best_step,
        n_steps=learned.n_steps,
        stopped=learned.stopped,
        seconds=student.seconds,
        settings=settings.to_dict(),
        data=data,
        decisions=_decisions(material, learned, settings),
        versions=package_versions(),
    )


def _decisions(
    material: StudentData, learned: Learned, settings: StudentSettings
) -> tuple[Decision, ...]:
    message = "texts hold no token that the student reads; left out"
    decisions = counted("training", "unread", material.n_unread, message)
    width = learned.table.shape[1]
    if width < settings.dimensions:
        message = f"the teacher's vectors have {width} dimensions, and so have the student's"
        decisions.append(Decision("training", "dimensions", width, message))
    if learned.best_step == 0:
        message = "no step came nearer to the teacher: the student is the distilled table"
        decisions.append(Decision("training", "nothing learned", True, message))
    return tuple(decisions)


def _changes(material: StudentData, learned: Learned, seed: int) -> tuple[Change, Change]:
    from threadpoolctl import threadpool_limits

    cosines, hits = [], []
    validation = material.validation
    n = len(validation.targets)
    with threadpool_limits(limits=1, user_api="blas"):
        for state in (material, learned):
            vectors = student_vectors(validation.bags, state.table, state.weights)
            similarities = vectors @ validation.targets.T
            diagonal = np.diagonal(similarities)
            cosines.append(diagonal.astype(np.float64))
            hits.append(((similarities >= diagonal[:, None]).sum(axis=1) == 1).astype(np.float64))

    def change(metric: str, values: list[Float64Array]) -> Change:
        figure = Figure(metric, mean, values[0], values[1], np.ones(n), np.arange(n))
        effect = compare_scores(figure, N_RESAMPLES, seed)
        return judge("held-out texts", metric, effect, n, OPTIMISTIC).change

    return change("mean cosine with the teacher", cosines), change("own vector nearest", hits)
