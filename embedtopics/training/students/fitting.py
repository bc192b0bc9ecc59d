"""From a teacher and texts to a static student, and an account of how near it came."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from embedtopics._files import check_output_folder
from embedtopics._progress import progress_bar
from embedtopics._versions import package_versions
from embedtopics.encoders import StaticEncoder, resolve_encoder
from embedtopics.encoders.static_files import KIND
from embedtopics.encoders.whole_words import Vocabulary
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Change, Decision, StudentReport
from embedtopics.training.curves.reading import read_curves
from embedtopics.training.effects.comparing import judge
from embedtopics.training.effects.intervals import Figure, compare_scores
from embedtopics.training.effects.statistics import mean
from embedtopics.training.report_files import write_report
from embedtopics.training.students.learning import (
    Bagged,
    Learned,
    learn,
    plan,
    student_vectors,
)
from embedtopics.training.students.settings import (
    StudentOptions,
    StudentSettings,
    student_settings,
)
from embedtopics.training.students.starting import (
    FEWEST_TEXTS,
    Gathered,
    axes_of,
    bags_of,
    encode_with,
    gather,
    start_table,
    vocabulary_of,
)

__all__ = ["StudentResult", "fit_static_student"]

N_RESAMPLES = 1000
CHOSEN = "These texts decided which step was kept, too: the figure after is a little high."


@dataclass(frozen=True, eq=False)
class StudentResult:
    """A static student, and how it was made.

    It can be used wherever an encoder is expected.

    Parameters
    ----------
    encoder : StaticEncoder
    report : StudentReport
    """

    encoder: StaticEncoder
    report: StudentReport

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text; see `StaticEncoder.encode`."""
        return self.encoder.encode(texts, show_progress=show_progress)

    def save(self, folder: str | os.PathLike[str], *, dtype: str = "float32") -> None:
        """Write the encoder in model2vec's format, with its report and a model card.

        `StaticEncoder.save` tells of `dtype`; the figures of the report are those of float32.
        """
        path = Path(folder).expanduser()
        self.encoder.save(path, dtype=dtype)
        write_report(self.report, path)


@dataclass(frozen=True, eq=False)
class _Material:
    """All that learning needs.

    `training` and `validation` hold the texts of which the student reads at least one token.
    """

    table: FloatArray
    weights: FloatArray
    training: Bagged
    validation: Bagged
    explained: float
    n_unread: int


def fit_static_student(
    teacher: Any,
    texts: Any,
    *,
    general: Any = None,
    out: str | os.PathLike[str] | None = None,
    cached: bool = True,
    show_progress: bool | None = None,
    **options: Unpack[StudentOptions],
) -> StudentResult:
    """Learn a static encoder, a table of token vectors, from a transformer's vectors of texts.

    A static encoder reads tens of thousands of texts a second. `distill` makes one of the
    teacher's vectors of single tokens; a student learns from its vectors of whole texts, and is
    the nearer to it for that. Frequent words that the teacher's tokenizer splits, and frequent
    phrases such as "neural network", get vectors of their own. The teacher reads each text once;
    the table starts as `distill` would make it and is then learned, token vectors and their
    weights, so that the mean over a text points where the teacher's vector does.

    A student has read its texts, those held out for validation as well, since they decide which
    step is kept. Where it is to be scored on a test, the texts of the test must be left out of
    `texts` and `general`, or its figures are too high.

    Parameters
    ----------
    teacher : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Its checkpoint has to have a tokenizer.json. ``SentenceEncoder(precision="int8")`` is
        twice as fast on a CPU.
    texts : Corpus, sequence of str or whatever `Corpus.of` takes
        What the student is for. A few thousand texts help; a hundred thousand are better.
    general : the same, optional
        Other texts to learn from beside these, such as sentences of an encyclopedia: without them
        the student knows the words of its corpus only.
    out : path, optional
        Folder to save the student in, in model2vec's format, with its report and a model card;
        see `read_report`.
    cached : bool
        Whether the vectors of a teacher given by name are kept on disk, see `CachedEncoder`.
    show_progress : bool, optional
        None shows bars where stderr is a terminal or a notebook listens.
    **options
        See `StudentSettings`: dimensions, max_words, max_phrases, min_count, epochs, seed, ...

    Returns
    -------
    StudentResult
        The encoder, and a report with the learning curves, what they say, and how near it came to
        its teacher. The same texts in any order, settings
        and versions give the same bits, whatever the number of threads.

    Raises
    ------
    InputError
        If an option is bad, there are too few texts, or the teacher does not show its tokenizer.
    ModelLoadError
        If the teacher cannot be loaded.

    References
    ----------
    S. Tulkens and T. van Dongen, "Model2Vec: fast state-of-the-art static embeddings", 2024, and
    its Tokenlearn, which draws token means to a teacher's vectors too.

    Examples
    --------
    >>> student = fit_static_student("all-MiniLM-L6-v2", titles)  # doctest: +SKIP
    >>> student.save("minilm-of-titles")  # doctest: +SKIP
    >>> student.report.agreement.after  # doctest: +SKIP
    0.89
    """
    settings = student_settings(options)
    if out is not None:
        check_output_folder(Path(out).expanduser(), KIND)
    encoder = resolve_encoder(teacher, cached=cached)
    tokenizer = getattr(encoder, "tokenizer_json", None)
    if not isinstance(tokenizer, str):
        raise InputError(
            "expected a SentenceEncoder as the teacher, whose `tokenizer_json` tells its tokens; "
            f"got {encoder!r}"
        )
    clock = [time.perf_counter()]
    gathered = gather(texts, general, settings)
    learned_from = [gathered.texts[place] for place in gathered.training]
    vocabulary, words, phrases = vocabulary_of(tokenizer, learned_from, settings)
    clock.append(time.perf_counter())
    material = _prepare(encoder, vocabulary, gathered, settings, show_progress)
    clock.append(time.perf_counter())
    n_steps = plan(len(material.training.targets), settings)[2]
    with progress_bar(
        total=n_steps, unit="step", description="Learning", show=show_progress
    ) as bar:
        learned = learn(
            material.table, material.weights, material.training, material.validation, settings, bar
        )
    clock.append(time.perf_counter())
    seconds = dict(zip(("words", "teacher", "learning"), np.diff(clock).tolist(), strict=True))
    report = _report(encoder, gathered, settings, material, learned, (words, phrases), seconds)
    result = StudentResult(_student(encoder, vocabulary, learned, report), report)
    if out is not None:
        result.save(out)
    return result


def _prepare(
    encoder: Any,
    vocabulary: Vocabulary,
    gathered: Gathered,
    settings: StudentSettings,
    show_progress: bool | None,
) -> _Material:
    vectors = encode_with(encoder, gathered.texts, "texts", show_progress)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    # A teacher that reads so many tokens of a text says nothing of those behind.
    reads = getattr(encoder, "max_length", None)
    bags = bags_of(vocabulary, gathered.texts, reads if isinstance(reads, int) else None)
    counts = np.asarray(bags[gathered.training].sum(axis=0)).ravel().astype(np.int64)
    is_read = (np.diff(bags.indptr) > 0) & (lengths > 0)
    training, validation = (
        rows[is_read[rows]] for rows in (gathered.training, gathered.validation)
    )
    if len(training) < FEWEST_TEXTS // 2 or not len(validation):
        raise InputError(
            f"expected texts in words that the teacher knows, got {int(is_read.sum())} such among "
            f"{len(is_read)}; check the teacher's language"
        )
    vectors /= np.maximum(lengths, 1e-30).astype(np.float32)[:, None]
    axes = axes_of(vectors[training], settings.dimensions)
    kept = np.flatnonzero([bool(surface) for surface in vocabulary.surfaces])
    surfaces = [vocabulary.surfaces[place] for place in kept]
    alone = encode_with(encoder, surfaces, "tokens", show_progress)
    table, weights = start_table(axes.project(alone), kept, counts, settings.sif_coefficient)

    def bagged(rows: Int64Array) -> Bagged:
        targets = axes.project(vectors[rows])
        norms = np.sqrt(np.einsum("ij,ij->i", targets, targets))[:, None]
        return Bagged(bags[rows], targets / np.maximum(norms, np.float32(1e-12)))

    unread = int((~is_read).sum())
    return _Material(table, weights, bagged(training), bagged(validation), axes.explained, unread)


def _report(
    encoder: Any,
    gathered: Gathered,
    settings: StudentSettings,
    material: _Material,
    learned: Learned,
    added: tuple[list[str], list[str]],
    seconds: dict[str, float],
) -> StudentReport:
    words, phrases = added
    agreement, finding = _changes(material, learned, settings.seed)
    n_corpus = int((gathered.training < gathered.n_corpus).sum())
    return StudentReport(
        teacher=_name_of(encoder),
        dimensions=int(learned.table.shape[1]),
        explained_variance=round(material.explained, 4),
        n_texts=n_corpus,
        n_general=len(gathered.training) - n_corpus,
        n_validation=len(material.validation.targets),
        n_tokens=len(learned.table),
        n_words=len(words),
        n_phrases=len(phrases),
        words=tuple(words),
        phrases=tuple(phrases),
        curves=learned.curves,
        diagnosis=read_curves(learned.curves),
        agreement=agreement,
        finding=finding,
        best_step=learned.best_step,
        n_steps=learned.n_steps,
        stopped=learned.stopped,
        seconds=seconds,
        settings=settings.to_dict(),
        data=_data(gathered, n_corpus, material, (len(words), len(phrases))),
        decisions=_decisions(material, learned, settings),
        versions=package_versions(),
    )


def _name_of(encoder: Any) -> str:
    """Return the name of an encoder; of a folder the last part, for others need not know the rest.

    The owner of a checkpoint on the hub is part of its name.
    """
    name = str(getattr(encoder, "name", type(encoder).__name__))
    return Path(name).name if getattr(encoder, "source", "path") == "path" else name


def _data(
    gathered: Gathered, n_corpus: int, material: _Material, added: tuple[int, int]
) -> dict[str, Any]:
    found: dict[str, Any] = {"texts": gathered.sources[0], "n_texts": n_corpus}
    if gathered.sources[1:]:
        n_general = len(gathered.training) - n_corpus
        found |= {"general": gathered.sources[1], "n_general": n_general}
    return found | {
        "n_validation": len(material.validation.targets),
        "n_words_added": added[0],
        "n_phrases_added": added[1],
    }


def _decisions(
    material: _Material, learned: Learned, settings: StudentSettings
) -> tuple[Decision, ...]:
    found = []
    if material.n_unread:
        found.append(
            Decision(
                "training",
                "unread",
                material.n_unread,
                f"{material.n_unread} texts hold no token that the student reads; they were left "
                "out",
            )
        )
    width = learned.table.shape[1]
    if width < settings.dimensions:
        found.append(
            Decision(
                "training",
                "dimensions",
                width,
                f"the teacher's vectors have {width} dimensions, and so have the student's",
            )
        )
    if learned.best_step == 0:
        found.append(
            Decision(
                "training",
                "nothing learned",
                True,
                "no step came nearer to the teacher on held-out texts than the start; the student "
                "is the distilled table",
            )
        )
    return tuple(found)


def _changes(material: _Material, learned: Learned, seed: int) -> tuple[Change, Change]:
    """Compare the start and the student on the held-out texts."""
    from threadpoolctl import threadpool_limits

    cosines, hits = [], []
    targets = material.validation.targets
    with threadpool_limits(limits=1, user_api="blas"):
        for table, weights in (
            (material.table, material.weights),
            (learned.table, learned.weights),
        ):
            vectors = student_vectors(material.validation.bags, table, weights)
            similarities = vectors @ targets.T
            own = np.diagonal(similarities)
            cosines.append(own.astype(np.float64))
            hits.append((similarities >= own[:, None]).sum(axis=1) == 1)
    return (
        _change("mean cosine with the teacher", cosines, seed),
        _change("own vector nearest", hits, seed),
    )


def _change(metric: str, values: list[npt.NDArray[Any]], seed: int) -> Change:
    before, after = (np.asarray(each, dtype=np.float64) for each in values)
    n = len(before)
    figure = Figure(metric, mean, before, after, np.ones(n), np.arange(n))
    found = compare_scores(figure, N_RESAMPLES, seed)
    return judge("held-out texts", metric, found, n, CHOSEN).change


def _student(
    encoder: Any, vocabulary: Vocabulary, learned: Learned, report: StudentReport
) -> StaticEncoder:
    settings = report.settings
    made_from = {
        "method": "static student",
        "encoder": report.teacher,
        "encoder_fingerprint": getattr(encoder, "fingerprint", None),
        "n_texts": report.n_texts,
        "n_general": report.n_general,
        "n_words": report.n_words,
        "n_phrases": report.n_phrases,
        "dimensions": report.dimensions,
        "explained_variance": report.explained_variance,
        "n_steps": report.n_steps,
        "best_step": report.best_step,
        "agreement": round(report.agreement.after, 4),
        "settings": dict(settings),
    }
    return StaticEncoder.from_arrays(
        learned.table * learned.weights[:, None],
        vocabulary.tokenizer,
        normalize=True,
        max_length=settings["max_length"],
        name=f"student {report.teacher}",
        languages=getattr(encoder, "languages", None),
        made_from=made_from,
    )
