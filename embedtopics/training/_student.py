"""Static students: a table of token vectors, learned from a transformer's vectors of texts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.decisions import Decision, counted
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.static._distill import (
    Vocabulary,
    add_words,
    frequent_split_words,
    plain_vocabulary,
    word_reader,
)
from embedtopics.encoders.static._encoder import StaticEncoder, bag_tokens, unknown_token
from embedtopics.encoders.static._files import KIND, parse_tokenizer
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.training._compare import judge
from embedtopics.training._figures import Figure, compare_scores, mean
from embedtopics.training._report import write_report
from embedtopics.training._settings import StudentSettings, settings_from
from embedtopics.training._student_table import Bagged, Learned, learn, student_vectors
from embedtopics.training.curves._verdict import read_curves
from embedtopics.training.results import Change, StudentReport
from embedtopics.training.trainer._checkpoints import refuse_finished

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FEWEST_TEXTS = 50
MOST_VALIDATION = 5_000
PRIOR_TOKENS = 1_000_000
"""Tokens of running text that Zipf's law counts for, beside those of the texts; as in `distill`."""

N_RESAMPLES = 1000
CHOSEN = "These texts decided which step was kept, too: the figure after is a little high."


@dataclass(frozen=True, eq=False)
class StudentResult:
    """A static student, and how it was made. It can be used wherever an encoder is expected."""

    encoder: StaticEncoder
    report: StudentReport

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text; see `StaticEncoder.encode`."""
        vectors: FloatArray = self.encoder.encode(texts, show_progress=show_progress)
        return vectors

    def save(self, folder: str | os.PathLike[str], *, dtype: str = "float32") -> None:
        """Write the encoder in model2vec's format, with its report and a model card."""
        path = Path(folder).expanduser()
        self.encoder.save(path, dtype=dtype)
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

    A static encoder reads tens of thousands of texts a second. `distill` makes one of the
    teacher's vectors of single tokens; a student learns from its vectors of whole texts, and is
    nearer to it. Frequent words that the teacher's tokenizer splits, and frequent phrases such as
    "neural network", get vectors of their own. The teacher reads each text once.

    A student has read its texts, those held out for validation as well. Where it is to be scored on
    a test, leave the texts of the test out of `texts` and `general`, or its figures are too high.

    Parameters
    ----------
    teacher : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Its checkpoint has to have a tokenizer.json. ``SentenceEncoder(precision="int8")`` is
        twice as fast on a CPU.
    texts : Corpus, sequence of str or whatever `Corpus.of` takes
        A few thousand texts help; a hundred thousand are better.
    general : the same, optional
        Other texts to learn from, such as sentences of an encyclopedia: without them the student
        knows the words of its corpus only.
    out : path, optional
        Folder to save the student in, in model2vec's format, with its report and model card.
    overwrite : bool
        Replace a finished encoder in `out`.
    cached : bool
        Whether the vectors of a teacher given by name are kept on disk, see `CachedEncoder`.
    show_progress : bool, optional
        None shows bars where someone watches.
    **options
        dimensions, max_words, max_phrases, min_count, min_phrase_count, min_npmi, epochs,
        min_steps, batch_size, learning_rate, contrast, temperature, validation_share,
        validations_per_epoch, patience, max_length, random_state.

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
    settings: StudentSettings = settings_from(StudentSettings, options)
    if out is not None:
        refuse_finished(out, overwrite)
        check_output_folder(Path(out).expanduser(), KIND)
    encoder = resolve_exact(teacher, cached=cached)
    tokenizer = encoder.tokenizer_json
    if tokenizer is None:
        raise InputError("teacher", "a SentenceEncoder with a tokenizer.json", encoder)
    clock = [time.perf_counter()]
    gathered = gather(texts, general, settings)
    learned_from = [gathered.texts[place] for place in gathered.training]
    plain = plain_vocabulary(tokenizer)
    limits = {"max_words": settings.max_words, "min_count": settings.min_count}
    words = frequent_split_words(plain, learned_from, **limits)
    phrases = frequent_phrases(plain, learned_from, settings)
    vocabulary = add_words(plain, [*words, *phrases])
    clock.append(time.perf_counter())
    material = _prepare(encoder, vocabulary, gathered, settings, show_progress)
    clock.append(time.perf_counter())
    start = material.table, material.weights
    learned = learn(*start, material.training, material.validation, settings, show_progress)
    clock.append(time.perf_counter())
    seconds = dict(zip(("words", "teacher", "learning"), np.diff(clock).tolist(), strict=True))
    report = _report(encoder, gathered, settings, material, learned, (words, phrases), seconds)
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
    made = StaticEncoder.from_arrays(
        learned.table * learned.weights[:, None],
        vocabulary.tokenizer,
        max_length=settings.max_length,
        name=f"student {report.teacher}",
        languages=encoder.languages,
        made_from=made_from,
    )
    result = StudentResult(made, report)
    if out is not None:
        result.save(out)
    return result


@dataclass(frozen=True, eq=False)
class _Material:
    """All that learning needs, of texts of which the student reads at least one token."""

    table: FloatArray
    weights: FloatArray
    training: Bagged
    validation: Bagged
    explained: float
    n_unread: int


def _prepare(
    encoder: Any,
    vocabulary: Vocabulary,
    gathered: Gathered,
    settings: StudentSettings,
    show_progress: bool | None,
) -> _Material:
    vectors = encode_with(encoder, gathered.texts, "texts", show_progress)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    # A teacher that reads so many tokens of a text knows nothing of the rest.
    bags = bags_of(vocabulary, gathered.texts, encoder.max_length)
    counts = np.asarray(bags[gathered.training].sum(axis=0)).ravel().astype(np.int64)
    is_read = (np.diff(bags.indptr) > 0) & (lengths > 0)
    training, validation = (
        rows[is_read[rows]] for rows in (gathered.training, gathered.validation)
    )
    if len(training) < FEWEST_TEXTS // 2 or not len(validation):
        found = f"{int(is_read.sum())} such texts of {len(is_read)}"
        raise InputError("texts", "in words that the teacher knows", found=found)
    vectors /= np.maximum(lengths, 1e-30).astype(np.float32)[:, None]
    axes, explained = axes_of(vectors[training], settings.dimensions)
    kept = np.flatnonzero([bool(surface) for surface in vocabulary.surfaces])
    surfaces = [vocabulary.surfaces[place] for place in kept]
    alone = encode_with(encoder, surfaces, "tokens", show_progress)
    table, weights = start_table(project(alone, axes), kept, counts, settings.sif_coefficient)

    def bagged(rows: Int64Array) -> Bagged:
        targets = project(vectors[rows], axes)
        norms = np.sqrt(np.einsum("ij,ij->i", targets, targets))[:, None]
        return Bagged(bags[rows], targets / np.maximum(norms, np.float32(1e-12)))

    unread = int((~is_read).sum())
    return _Material(table, weights, bagged(training), bagged(validation), explained, unread)


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
    # Of a folder the last part, for others need not know the rest; on the hub, the owner too.
    name, transformer = encoder.name, encoder.transformer
    if transformer is None or transformer.source == "path":
        name = Path(name).name
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
        teacher=name,
        dimensions=int(learned.table.shape[1]),
        explained_variance=round(material.explained, 4),
        n_texts=n_corpus,
        n_general=n_general,
        n_validation=n_validation,
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
        data=data,
        decisions=_decisions(material, learned, settings),
        versions=package_versions(),
    )


def _decisions(
    material: _Material, learned: Learned, settings: StudentSettings
) -> tuple[Decision, ...]:
    message = "texts hold no token that the student reads; left out"
    found = counted("training", "unread", material.n_unread, message)
    width = learned.table.shape[1]
    if width < settings.dimensions:
        message = f"the teacher's vectors have {width} dimensions, and so have the student's"
        found.append(Decision("training", "dimensions", width, message))
    if learned.best_step == 0:
        message = "no step came nearer to the teacher: the student is the distilled table"
        found.append(Decision("training", "nothing learned", True, message))
    return tuple(found)


def _changes(material: _Material, learned: Learned, seed: int) -> tuple[Change, Change]:
    from threadpoolctl import threadpool_limits

    cosines, hits = [], []
    held = material.validation
    n = len(held.targets)
    with threadpool_limits(limits=1, user_api="blas"):
        for made in (material, learned):
            similarities = student_vectors(held.bags, made.table, made.weights) @ held.targets.T
            own = np.diagonal(similarities)
            cosines.append(own.astype(np.float64))
            hits.append(((similarities >= own[:, None]).sum(axis=1) == 1).astype(np.float64))

    def change(metric: str, values: list[Float64Array]) -> Change:
        figure = Figure(metric, mean, values[0], values[1], np.ones(n), np.arange(n))
        found = compare_scores(figure, N_RESAMPLES, seed)
        return judge("held-out texts", metric, found, n, CHOSEN).change

    return change("mean cosine with the teacher", cosines), change("own vector nearest", hits)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Distinct texts, in an order that does not depend on that of the rows."""

    texts: list[str]  # those of the corpus first
    n_corpus: int  # how many they are
    training: Int64Array  # places in `texts`, ascending
    validation: Int64Array  # places in `texts`, ascending
    sources: tuple[str, ...]  # where the corpus came from, and the general mix where there is one


def gather(texts: Any, general: Any, settings: StudentSettings) -> Gathered:
    """Join the texts of a corpus and a general mix, each once, and hold some of them out."""
    corpus = Corpus.of(texts)
    require_text(corpus)
    joined = dict.fromkeys(corpus.document_texts())
    n_corpus, sources = len(joined), [corpus.source]
    if general is not None:
        mix = Corpus.of(general)
        require_text(mix)
        joined |= dict.fromkeys(mix.document_texts())
        sources.append(mix.source)
    found = list(joined)
    if len(found) < FEWEST_TEXTS:
        remedy = "give more texts, or use distill(), which needs none"
        raise InputError("texts", f"{FEWEST_TEXTS} or more", len(found), remedy)
    n_held = min(MOST_VALIDATION, max(10, round(settings.validation_share * len(found))))
    order = np.random.default_rng(settings.random_state).permutation(len(found))
    training, validation = np.sort(order[n_held:]), np.sort(order[:n_held])
    return Gathered(found, n_corpus, training, validation, tuple(sources))


def frequent_phrases(
    vocabulary: Vocabulary, texts: Sequence[str], settings: StudentSettings
) -> list[str]:
    """Return phrases of two and three words with enough NPMI (Bouma 2009), most frequent first."""
    min_count, min_npmi = settings.min_phrase_count, settings.min_npmi
    if not settings.max_phrases:
        return []
    ids, words = _read(vocabulary, texts, min_count)
    singles = np.bincount(ids, minlength=len(words) + 1)[1:]
    n_words = int(singles.sum())
    if not n_words:
        return []
    pairs, of_place, n_pairs = _runs(ids[:-1] - 1, ids[1:] - 1, len(words), min_count)
    first, second = np.divmod(pairs, len(words))
    expected = singles[first] * (singles[second] / n_words)
    found = _chosen(n_pairs, expected, n_words, 2, min_npmi, (first, second))
    if len(of_place) > 1 and len(pairs):
        triples, _, n_triples = _runs(of_place[:-1], ids[2:] - 1, len(words), min_count)
        pair, third = np.divmod(triples, len(words))
        expected = singles[first[pair]] * (singles[second[pair]] / n_words)
        expected = expected * (singles[third] / n_words)
        parts = (first[pair], second[pair], third)
        found += _chosen(n_triples, expected, n_words, 3, min_npmi, parts)
    named: dict[str, int] = {}
    for count, parts_of in found:
        phrase = " ".join(words[part] for part in parts_of)
        named[phrase] = named.get(phrase, 0) + count
    return sorted(named, key=lambda phrase: (-named[phrase], phrase))[: settings.max_phrases]


def _read(
    vocabulary: Vocabulary, texts: Sequence[str], min_count: int
) -> tuple[Int64Array, list[str]]:
    """Return all words of all texts as numbers from 1 (0: between texts, or not frequent)."""
    reader, raw = word_reader(vocabulary, texts, min_count)
    words = sorted({word for word in raw if word})
    number = {word: place for place, word in enumerate(words, start=1)}
    numbers = np.array([number.get(word, 0) for word in raw], dtype=np.int64)
    parts = [np.zeros(0, dtype=np.int64)]
    for slab in slabs(texts):
        found = reader.encode_batch_fast([readable(text) for text in slab])
        ids = chain.from_iterable(chain(encoding.ids, (0,)) for encoding in found)
        parts.append(numbers[np.fromiter(ids, dtype=np.int64)])
    return np.concatenate(parts), words


def _runs(
    left: Int64Array, right: Int64Array, n_right: int, min_count: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return frequent pairs of neighbours, the pair at each place, (n_places,), and counts."""
    keys = np.where((left >= 0) & (right >= 0), left * n_right + right, -1)
    pairs, counts = np.unique(keys[keys >= 0], return_counts=True)
    is_frequent = counts >= min_count
    pairs, counts = pairs[is_frequent], counts[is_frequent]
    if not len(pairs):
        return pairs, np.full(len(keys), -1, dtype=np.int64), counts
    place = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    return pairs, np.where(pairs[place] == keys, place, -1), counts


def _chosen(
    counts: Int64Array,
    expected: Float64Array,
    n_words: int,
    n: int,
    min_npmi: float,
    parts: tuple[Int64Array, ...],
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the count and the words of each run with enough mutual information."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.log(counts / expected) / ((1 - n) * np.log(counts / n_words))
    # A phrase that is the whole corpus has no information: 0 / 0.
    rows = np.flatnonzero(np.nan_to_num(scores, nan=-1.0) >= min_npmi)
    columns = [part[rows].tolist() for part in parts]
    return list(zip(counts[rows].tolist(), zip(*columns, strict=True), strict=True))


def bags_of(vocabulary: Vocabulary, texts: Sequence[str], max_length: int | None) -> csr_matrix:
    """Return how often each text holds each token, float32 of shape (n_texts, n_tokens)."""
    from scipy.sparse import csr_matrix

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    unknown = unknown_token(parsed)
    ids, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(1, dtype=np.int64)]
    for slab in slabs(texts):
        bags = bag_tokens(parsed, slab, unknown_id=unknown, max_length=max_length)
        ids.append(bags.ids)
        lengths.append(np.diff(bags.offsets))
    columns = np.concatenate(ids)
    counts = csr_matrix(
        (np.ones(len(columns), np.float32), columns, np.cumsum(np.concatenate(lengths))),
        shape=(len(texts), len(vocabulary.surfaces)),
    )
    counts.sum_duplicates()
    return counts


def encode_with(
    teacher: Any, texts: Sequence[str], what: str, show_progress: bool | None
) -> FloatArray:
    """Return a teacher's vectors."""
    vectors = np.asarray(teacher.encode(texts, show_progress=show_progress))
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind != "f":
        found = f"{vectors.dtype} of shape {vectors.shape}"
        wanted = f"one that gives each of {len(texts)} {what} a vector"
        raise InputError("teacher", wanted, found=found)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        found = f"another number for {texts[int(np.argmin(finite))][:60]!r}"
        raise InputError("teacher", "one of finite vectors", found=found)
    return vectors.astype(np.float32)


def axes_of(vectors: FloatArray, dimensions: int) -> tuple[FloatArray, float]:
    """Return principal axes of vectors, not centred, (n_teacher, n_dimensions), and their share."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        products = np.zeros((vectors.shape[1],) * 2)
        for begin in range(0, len(vectors), 65_536):
            part = vectors[begin : begin + 65_536].astype(np.float64)
            products += part.T @ part
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1][:, :dimensions]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    values = np.clip(values[::-1], 0, None)
    explained = float(values[:dimensions].sum() / max(values.sum(), 1e-30))
    return np.ascontiguousarray(axes, dtype=np.float32), explained


def project(rows: FloatArray, axes: FloatArray) -> FloatArray:
    """Return vectors along the axes, by BLAS on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return np.asarray(rows @ axes)


def start_table(
    vectors: FloatArray, stands_for_text: Int64Array, counts: Int64Array, coefficient: float
) -> tuple[FloatArray, FloatArray]:
    """Return table (n_tokens, n_dimensions) and weights (n_tokens,) of a distilled encoder."""
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = float(np.sqrt((centred.astype(np.float64) ** 2).sum(axis=1)).mean())
    table = np.zeros((len(counts), vectors.shape[1]), dtype=np.float32)
    table[stands_for_text] = centred / np.float32(max(length, 1e-12))
    zipf = 1.0 / np.arange(2, len(stands_for_text) + 2)
    zipf /= zipf.sum()
    p = (counts[stands_for_text] + PRIOR_TOKENS * zipf) / (counts.sum() + PRIOR_TOKENS)
    weights = np.ones(len(counts), dtype=np.float32)
    weights[stands_for_text] = coefficient / (coefficient + p)
    return table, weights
