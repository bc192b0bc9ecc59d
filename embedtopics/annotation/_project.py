"""A study: texts, a codebook, annotators, and a journal of what they said."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count, is_whole_text
from embedtopics._utils.display import spell_count
from embedtopics.annotation import _estimates, _tables
from embedtopics.annotation._codebook import (
    Label,
    StudyDesign,
    as_json,
    checked_annotator,
    checked_kind,
    checked_spans,
    count_order,
    read_labels,
    refuse_two_of_a_scheme,
)
from embedtopics.annotation._journal import KIND, VERSION, Journal
from embedtopics.annotation._learner import TextVectors
from embedtopics.annotation._loop import TeachingLoop
from embedtopics.annotation._records import ADJUDICATED, Records
from embedtopics.annotation._strategies import Strategy, checked_strategy, first_of_topics
from embedtopics.annotation.results import AnnotatorAgreement, Stopping, StudyReport, TextToLabel
from embedtopics.corpus import Corpus
from embedtopics.decisions import Decision, Exported
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification import TextClassifier
    from embedtopics.classification.results import Prevalence

LONGEST_NOTE = 10_000


class AnnotationProject(TeachingLoop):
    """People label texts, a model learns beside them, and shares stay valid.

    Texts come from two streams. *Count* texts are drawn at random; *teach* texts are those that a
    strategy picks because the model learns most from them. Shares and quality are estimated from
    count texts alone, so that they are valid whatever the strategy picked. What is labelled is the
    distinct text: rows that repeat one have its label, and shares are of distinct texts.

    Every answer is on disk before the method returns. One process at a time has the folder; close
    the project, or use it in a ``with``.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus` takes
    labels : sequence of str, Label or mapping, or mapping of name to definition; optional
        The codebook, in the order of an ordinal scale. A mapping of name to list is of several
        schemes: a text has at most one label of each. May be left out where there is a study.
    folder : path
        Holds ``journal.jsonl``. Labels stay with their texts, by hash, when the corpus changes.
    kind : {"single", "several", "ordinal", "spans"}
        One label a text, any number of them, one of an ordered scale, the lowest first, or parts of
        texts that have labels: the model and shares are then of the labels that a text has.
    encoder : str, path, Encoder or ndarray of shape (n_rows, n_dimensions)
        Or the vectors themselves, a row for each row of the corpus.
    strategy : str or object
        What picks *teach* texts: "uncertainty", "entropy", "diversity", "rare", "disagreement",
        "discriminative", "random", or an object with ``pick(pool, n)``.
    topics : sequence of int, optional
        Topic of each row, -1 for none: the study starts with one text from each. By default it
        starts with texts that are far from one another, but for the strategy "random".
    design : StudyDesign, optional
        Fixed when the study begins.

    Attributes
    ----------
    decisions : tuple of Decision
        What was noticed: a mended journal, labels of texts that are not in the corpus any more.

    Raises
    ------
    InputError
        Labels or keys that repeat, a folder that another process has open, a design or a kind that
        is not that of the study in the folder.
    CorruptFileError
        A damaged journal, or one of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> folder = tempfile.mkdtemp()
    >>> with AnnotationProject(texts, ["fruit", "rail"], folder, encoder="lsa") as study:
    ...     text = study.next()
    ...     study.label(text.key, "rail" if "trains" in text.text else "fruit")
    ...     study.to_frame()["label"].tolist() in (["rail"], ["fruit"])
    True
    """

    def __init__(
        self,
        corpus: Any,
        labels: Any,
        folder: str | os.PathLike[str],
        kind: str | None = None,
        *,
        encoder: Any = "all-MiniLM-L6-v2",
        strategy: str | Strategy = "uncertainty",
        topics: Sequence[int] | None = None,
        design: StudyDesign | None = None,
    ) -> None:
        self.corpus = Corpus.of(corpus)
        self.strategy = checked_strategy(strategy)
        distinct = self.corpus.distinct()
        if len(distinct) < 2:
            raise InputError("corpus", "of at least 2 different texts", found=f"{len(distinct)}")
        self._documents = self.corpus.take(distinct.first_rows)
        self.keys: list[str] = [f"{a:016x}{b:016x}" for a, b in distinct.hashes.tolist()]
        self._row = {key: row for row, key in enumerate(self.keys)}
        groups = None if topics is None else _checked_topics(topics, self.corpus)
        # What can be refused is refused before a folder is made.
        read = None if labels is None else read_labels(labels)
        wanted = None if design is None else design.checked()
        if wanted is not None:
            self._strata(wanted)
        if kind is not None:
            checked_kind(kind)
        self._vectors = self._read_vectors(encoder)
        self._starts = None if groups is None else first_of_topics(self._vectors.matrix, groups)
        self._journal = Journal(Path(os.path.realpath(folder)))
        try:
            if not self._journal.events:
                self._begin(read, kind, wanted or StudyDesign().checked())
            self._records = Records(self._journal.events[0])
            for event in self._journal.events[1:]:
                self._records.apply(event)
            self._check_same(read, kind, wanted)
        except BaseException:
            self._journal.close()
            raise
        self._start_loop()
        self.decisions = self._noticed()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes open the study."""
        if self._wake is not None:
            self._closing = True
            self._wake.set()
            self._thread.join(timeout=60)
            self._wake = None
        self._journal.close()

    def _begin(self, labels: Any, kind: str | None, design: StudyDesign) -> None:
        if labels is None:
            raise InputError("labels", "given where a study begins", None)
        has_schemes = any(label.scheme for label in labels)
        kind = kind or ("several" if has_schemes else "single")
        if has_schemes and kind != "several":
            raise InputError("kind", '"several" for several schemes', kind)
        seed = int(design.random_state or 0)
        order = count_order(self.keys, seed, self._strata(design))
        n_test = min(design.n_test, len(self.keys) // 10)
        # Every other text of the count stream, so that the model does not wait for the test part.
        test = [self.keys[row] for row in order[: 2 * n_test : 2]]
        self._journal.add(
            "study", kind=KIND, version=VERSION, labels_kind=kind, labels=as_json(labels),
            design=vars(design), test=test, n_texts=len(self.keys),
        )  # fmt: skip

    def _check_same(self, labels: Any, kind: str | None, design: StudyDesign | None) -> None:
        same = "that of the study in the folder"
        if labels is not None and labels != self.codebook:
            names = [label.name for label in self.codebook]
            remedy = "leave labels out, and change the codebook with edit_codebook"
            raise InputError("labels", f"{same}, {names}", [one.name for one in labels], remedy)
        if kind is not None and kind != self.kind:
            raise InputError("kind", f"{same}, {self.kind!r}", kind)
        if design is not None and design != self.design:
            raise InputError("design", same, design, f"leave it out for {self.design}")

    def _read_vectors(self, encoder: Any) -> TextVectors:
        texts = list(self._documents.texts)
        first = self.corpus.distinct().first_rows
        if isinstance(encoder, np.ndarray):
            if len(encoder) != len(self.corpus):
                found = f"{len(encoder):,} for {len(self.corpus):,} rows"
                raise InputError("encoder", "of one vector for each row", found=found)
            vectors = unit_rows(encoder, what="encoder", rows=first, keep_zeros=True)
        else:
            made: Any = resolve_encoder(encoder, cached=True).fitted_to(texts).encode(texts)
            if hasattr(made, "tocsr"):
                remedy = 'take "lsa", which projects them'
                raise InputError("encoder", "one of dense vectors", encoder, remedy)
            vectors = unit_rows(made, keep_zeros=True)
        return TextVectors(vectors, {text: row for row, text in enumerate(texts)})

    def _noticed(self) -> tuple[Decision, ...]:
        noticed = []
        if self._journal.n_mended:
            message = "The last line of the journal was incomplete and was removed."
            noticed.append(Decision("annotation", "mended", 1, message))
        gone = [text for text in self._records.stacks if text not in self._row]
        if gone:
            ids = set(self._documents.ids)
            changed = sum(
                any(one.id in ids for one in self._records.answers(text).values()) for text in gone
            )
            message = (
                f"{len(gone):,} labelled texts are not in the corpus any more; of {changed:,} the "
                "id is there with another text. Their labels are kept and not used."
            )
            noticed.append(Decision("annotation", "gone", len(gone), message))
        n_repeats = int((self.corpus.distinct().weights - 1).sum())
        if n_repeats:
            message = spell_count(n_repeats, "row repeats", "rows repeat")
            message += " another's text; the label is that of the text."
            noticed.append(Decision("annotation", "duplicates", n_repeats, message))
        return tuple(noticed)

    @property
    def codebook(self) -> tuple[Label, ...]:
        """The labels."""
        return self._records.labels

    def label(
        self, key: str, labels: str | Sequence[str] = (), *, by: str = "annotator",
        unsure: bool = False, note: str = "", stream: str | None = None,
        spans: Sequence[tuple[str, int, int]] = (),
    ) -> None:  # fmt: skip
        """Record a label, on disk before this returns; a later one replaces it.

        Parameters
        ----------
        key : str
            Of the text, as `next` gave it.
        labels : str or sequence of str
            One label; any number, none included, for several labels a text; none for spans.
        by : str
            The annotator.
        unsure : bool
        note : str
        stream : str, optional
            From which the text came; by default that for which `next` gave it, or "teach".
        spans : sequence of (label, begin, end)
            Of the kind "spans": parts of the text, in characters, that do not overlap.

        Raises
        ------
        InputError
            An unknown text, label or stream; a journal that cannot be written.
        """
        names = (labels,) if isinstance(labels, str) else tuple(labels)
        known = self._records.names
        self._row_of(key)
        marked = checked_spans(spans, self._documents.texts[self._row[key]], known)
        if marked and self.kind != "spans":
            raise InputError("spans", 'given for the kind "spans" alone', list(marked))
        if names and self.kind == "spans":
            raise InputError("labels", "left out where parts of texts have labels", list(names))
        names = names or tuple(name for name, _, _ in marked)
        for name in names:
            checked_choice(name, "labels", known)
        if not self.has_many and len(names) != 1:
            raise InputError("labels", "one label", list(names))
        refuse_two_of_a_scheme(names, self.codebook)
        ordered = [name for name in known if name in names]
        self._answer(key, ordered, by, stream, unsure=unsure, note=note, spans=marked)

    def skip(self, key: str, *, by: str = "annotator", note: str = "") -> None:
        """Put a text aside: it comes back at the end of the study."""
        self._answer(key, None, by, None, unsure=False, note=note)

    def adjudicate(self, key: str, labels: str | Sequence[str], *, by: str = "annotator") -> None:
        """Decide on a text about which annotators differ."""
        self.label(key, labels, by=f"{by} (decided)", stream=ADJUDICATED)

    def _answer(
        self, key: str, labels: list[str] | None, by: str, stream: str | None,
        *, unsure: bool, note: str, spans: tuple[tuple[str, int, int], ...] = (),
    ) -> None:  # fmt: skip
        self._row_of(key)
        checked_annotator(by)
        if not isinstance(note, str) or len(note) > LONGEST_NOTE or not is_whole_text(note):
            raise InputError("note", f"text of at most {LONGEST_NOTE:,} characters", note)
        with self._lock:
            if stream is None:
                if key in self._records.stacks:
                    stream = self._records.stream_of(key)
                else:
                    stream = self._held.get(key, ("", "teach", 0.0))[1]
            id = self._documents.ids[self._row[key]]
            more = {"spans": spans} if self.kind == "spans" else {}
            event = self._journal.add(
                "answer", text=key, id=id, by=by, labels=labels, stream=stream,
                unsure=bool(unsure), note=note, n_texts=len(self.keys), **more,
            )  # fmt: skip
            self._records.apply(event)
            self._held.pop(key, None)
            if key in self._asked:
                self._asked.remove(key)
        if self._wake is not None:
            self._wake.set()

    def _row_of(self, key: str) -> int:
        if key not in self._row:
            raise InputError("key", "of a text of the corpus", key)
        return self._row[key]

    def undo(self, *, by: str = "annotator", holder: str | None = None) -> TextToLabel | None:
        """Take back the last answer of an annotator and return its text; None where there is none.

        The answer before it, if there was one, holds again.
        """
        with self._lock:
            sequence = self._records.sequence.get(by)
            if not sequence:
                return None
            key = sequence[-1]
            stream = self._records.stream_of(key)
            self._records.apply(self._journal.add("undo", by=by))
            if key not in self._row:
                return None
            self._hold(key, holder or by, stream)
            return self._shown(key, stream)

    def edit_codebook(self, labels: Any, renamed: Mapping[str, str] | None = None) -> None:
        """Change the codebook, which is recorded.

        Parameters
        ----------
        labels : see the class
        renamed : mapping of str to str, optional
            Old names to new ones; two with one new name are merged.

        Raises
        ------
        InputError
            Where a label that texts have is neither kept nor renamed.
        """
        read, moved = read_labels(labels), dict(renamed or {})
        names = {label.name for label in read}
        with self._lock:
            used = {
                name for stacks in self._records.stacks.values() for stack in stacks.values()
                for answer in stack for name in answer.labels or ()
            }  # fmt: skip
            lost = sorted(name for name in used if moved.get(name, name) not in names)
            if lost:
                raise InputError("labels", f"with {lost[0]!r}, which texts have", sorted(names),
                                 "keep it, or give its new name in renamed")  # fmt: skip
            event = self._journal.add("codebook", labels=as_json(read), renamed=moved)
            self._records.apply(event)
            self._probabilities, self._queue, self._learned_version = None, [], -1

    def next(self, *, by: str = "annotator", holder: str | None = None) -> TextToLabel | None:
        """Return the next text for an annotator, or None at the end of the corpus.

        Parameters
        ----------
        by : str
        holder : str, optional
            Who keeps it from being given to others until it is answered, such as a tab of a
            browser; by default the annotator, who has one text at a time.
        """
        checked_annotator(by)
        if self._wake is None:
            self.learn()
        if holder is None:
            self.release(by)
        with self._lock:
            self.release("")  # of no holder, but those that were held for too long
            found = self._next(by)
            if found is None:
                return None
            key, stream = found
            self._hold(key, holder or by, stream)
            return self._shown(key, stream)

    def queue(self, keys: Sequence[str]) -> int:
        """Let texts come next, such as hits of a search or labels that look wrong.

        Those without an answer count as taught. Return how many wait.

        Parameters
        ----------
        keys : sequence of str
            Keys or ids of texts.

        Raises
        ------
        InputError
            For one that is not of the corpus, with its row.
        """
        by_id = _tables.keys_by(self, "id")
        found = [key if key in self._row else by_id.get(key) for key in keys]
        if None in found:
            row = found.index(None)
            raise InputError("keys", "keys or ids of texts of the corpus", keys[row], row=row)
        with self._lock:
            self._asked = list(dict.fromkeys([*map(str, found), *self._asked]))
            return len(self._asked)

    def merge(self, folder: str | os.PathLike[str], *, by: str | None = None) -> int:
        """Take in the answers of a study of the same texts in another folder, as of a colleague.

        Each answer keeps its annotator, stream and time; what is here already is left out, so that
        a folder can be merged again. Of two answers of one annotator to a text the later holds.

        Parameters
        ----------
        folder : path
            It is only read. The labels must be the same.
        by : str, optional
            Annotator whose answers all of these become, where both studies used one name.

        Returns
        -------
        int
            Answers that are new.

        Raises
        ------
        InputError
            Where kind or labels are not the same.
        CorruptFileError
            For a damaged journal.
        """
        return _tables.merge(self, folder, by)

    def suspicious_labels(self) -> pd.DataFrame:
        """Return labelled texts whose label is likely wrong, for `queue`.

        By `classification.suspicious_labels`; columns key, text, label, suggested,
        probability (of the label) and of_suggested. For one label a text.
        """
        return _estimates.suspicious(self)

    def classifier(self, method: str = "fine_tune", **options: Any) -> TextClassifier:
        """Return a classifier of texts that has learned from all labels but the test part's.

        Parameters
        ----------
        method : {"frozen", "few_shot", "fine_tune"}
        **options
            Of `embedtopics.classification.TextClassifier`.
        """
        return _estimates.classifier(self, method, options)

    def predict(self) -> pd.DataFrame:
        """Return id, and the probability of each label by the model, for every row of the corpus.

        Rows without text have NaN.
        """
        import pandas as pd

        self.learn()
        if self._probabilities is None:
            raise InputError("the model needs labels of two classes; label more texts")
        of_row = self.corpus.distinct().of_row
        found = np.full((len(of_row), len(self._records.names)), np.nan)
        found[of_row >= 0] = self._probabilities[of_row[of_row >= 0]]
        frame = pd.DataFrame(found, columns=list(self._records.names), index=self.corpus.index)
        frame.insert(0, "id", list(self.corpus.ids), allow_duplicates=True)
        return frame

    def prevalence(self, by: str | None = None, *, every: str = "year") -> Prevalence:
        """Estimate the share of each label among the distinct texts, with 95 % intervals.

        By prediction-powered inference from the texts of the count stream; the model that predicts
        a text has not learned from it. See `embedtopics.classification.prevalence`.

        Parameters
        ----------
        by : str, optional
            Column of groups or dates.
        every : {"year", "quarter", "month", "week", "day"}

        Raises
        ------
        InputError
            Where fewer than 2 count texts have a label.
        """
        return _estimates.shares(self, by, every)

    def quality(self) -> pd.DataFrame:
        """Return how well the model does on texts that it has not learned from.

        Accuracy, and recall and precision of each label, with Wilson's 95 % intervals. Of the count
        texts, each left out of the fit that predicts it, and of the test part, from which nothing
        is ever learned. Columns: part, class (None for all), metric, value, low, high, n.
        """
        return _estimates.quality(self)

    def stopping(
        self, recall: float = 0.95, confidence: float = 0.95, further: int = 50
    ) -> Stopping:
        """Return for each label whether enough was found, and what more count texts would bring.

        Parameters
        ----------
        recall : float
            Share of the texts of a label that is to be found.
        confidence : float
        further : int
            Labels more, for the expected width of the share's interval.
        """
        return _estimates.stopping(self, recall, confidence, checked_count(further, "further"))

    def report(self, by: str | None = None) -> StudyReport:
        """Return the study as it stands: codebook, numbers, quality, shares, agreement, examples.

        Parameters
        ----------
        by : str, optional
            Column of groups or dates, for the shares.
        """
        return _estimates.report(self, by)

    def agreement(self) -> AnnotatorAgreement:
        """Return Krippendorff's alpha of the annotators, and the texts on which they differ."""
        return _tables.agreement(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each text and annotator.

        Columns: id, key, text (None where it is not in the corpus any more), label (a list for
        several labels a text; None where skipped), spans (of that kind), unsure, note, annotator,
        stream, probability (of being drawn, for count texts that are a simple random sample), test,
        time.
        """
        return _tables.to_frame(self)

    def labels(self) -> pd.Series:
        """Return the label of each row of the corpus, None where there is none."""
        return _tables.labels(self)

    def export(self, path: str | os.PathLike[str]) -> Exported:
        """Write `to_frame` to a .csv, .parquet or .jsonl file, or spans as .conll: B-, I- or O.

        For `datasets`, ``Dataset.from_pandas(study.to_frame())``.
        """
        return _tables.export(self, path)

    def add_labels(self, data: Any, *, by: str = "imported") -> int:
        """Take in labels of other work, and return how many.

        They teach the model. Nobody knows how their texts were chosen, so in shares they count
        only where the random order comes to them.

        Parameters
        ----------
        data : frame or path
            With a column "label" ("spans" of that kind) and one of "key", "id" or "text"; rows
            without label are left out.
        by : str
            The annotator.

        Raises
        ------
        InputError
            For a label that is not in the codebook or a text that is not in the corpus: the message
            names the row. Then nothing is taken in.
        """
        return _tables.add_labels(self, data, by)

    def progress(self) -> dict[str, int]:
        """Return the numbers of texts, of labelled ones, of those by stream, and skipped ones."""
        with self._lock:
            n_labelled = len(self._labelled()[0])
            sample, n_missing = self.counted()
            return {
                "texts": len(self.keys), "answered": len(self._records.stacks),
                "labelled": n_labelled, "teach": self._records.streams["teach"],
                "count": self._records.streams["count"], "sample": len(sample),
                "sample_without_label": n_missing, "test": len(self._records.test),
            }  # fmt: skip


def _checked_topics(topics: Sequence[int], corpus: Corpus) -> Int64Array:
    given = np.asarray(topics)
    if given.shape != (len(corpus),) or given.dtype.kind not in "iu":
        raise InputError("topics", f"{len(corpus):,} integers, one a row", found=str(given.shape))
    return np.asarray(given[corpus.distinct().first_rows], dtype=np.int64)
