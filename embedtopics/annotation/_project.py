"""The public interface of a study: texts, a codebook, annotators and a journal of answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.display import Displayed
from embedtopics.annotation import _estimates
from embedtopics.annotation._answers import Records
from embedtopics.annotation._codebook import (
    KINDS,
    Label,
    StudyDesign,
    as_json,
    check_new_codebook,
    checked_annotator,
    checked_spans,
    count_order,
    read_labels,
    spell_name,
)
from embedtopics.annotation._events import KIND, VERSION
from embedtopics.annotation._journal import Journal, read_journal
from embedtopics.annotation._journal_lines import write_lines
from embedtopics.annotation._loop import STRATEGIES, STREAMS, TeachingLoop
from embedtopics.annotation._state import StudyState, StudyTexts, journal_notes
from embedtopics.annotation.results import AnnotatorAgreement, Stopping, StudyReport, TextToLabel
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._table_files import write_table
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import InputError
from embedtopics.inference import shares
from embedtopics.inference.results import PredictedLabel
from embedtopics.protocols import RandomState
from embedtopics.results import Exported

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.inference import Measurement

MAX_NOTE = 10_000
"""Characters of a note."""


class AnnotationProject(Displayed):
    """An annotation study: people label texts, a model learns, and estimated shares stay valid.

    Texts come from two streams. *Count* texts are drawn at random. *Teach* texts are picked by an
    active learning strategy. Shares and quality are estimated from the count texts, so they are
    valid for any strategy. The units are distinct texts: rows with equal texts share one label, and
    shares are shares of distinct texts.

    Every answer is on disk before its method returns. One process at a time can open the folder;
    call `close`, or use a ``with`` statement.

    Parameters
    ----------
    corpus : Corpus, or any input of `Corpus`
    codebook : sequence of str, Label or mapping, or mapping of name to definition; or None
        The labels, in the order of an ordinal scale; None for an existing study.
    folder : path
        Folder of ``journal.sqlite``. Labels are stored with the hashes of their texts, so they
        survive changes of the corpus. A ``journal.jsonl`` of a former version is copied into it.
    kind : {"single", "several", "ordinal", "spans"}
        One label a text, any number of labels, one of an ordered scale (lowest first), or labelled
        parts of the text. For "spans", the model and the shares use the labels that occur in a
        text.
    pairs : bool
        Whether each text is two, as in a `Corpus` of two text columns (``text=["claim", "post"]``):
        stance, entailment, duplicates. An existing study knows it.
    encoder : str, path, Encoder or ndarray of shape (n_rows, n_dimensions)
        An encoder, or one vector for each row of the corpus.
    strategy : {"uncertainty", "diversity", "random"}
        Picks the *teach* texts. Except for "random", a study starts with texts that are far from
        each other.
    teach : float
        Share of the texts that the strategy picks. The other texts, the *count* stream, are drawn
        at random; shares and quality are estimated from them.
    n_test : int
        Count texts that no model learns from; at most a tenth of all texts.
    overlap : float
        Share of the texts that every annotator labels.
    random_state : int, Generator or None
        Seed of the random order of the texts. An existing study keeps `teach`, `n_test`, `overlap`
        and its seed, and refuses other values of them.

    Attributes
    ----------
    corpus : Corpus
    keys : list of str
        The keys of the distinct texts: hashes of their content.
    kind : str
        The kind of labels.
    design : StudyDesign
        `teach`, `n_test`, `overlap` and `random_state`, fixed when the study began.
    codebook : tuple of Label
    decisions : tuple of Decision
        A copied journal of a former version, labelled texts that left the corpus, rows with equal
        texts.

    Raises
    ------
    InputError
        Repeated labels or keys, a folder that another process has open, or a design or kind other
        than that of the existing study.
    CorruptFileError
        A journal that was changed or damaged, another file in its place, or a journal of a newer
        version. The file stays as it is.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = et.AnnotationProject(
    ...         texts, ["fruit", "rail"], folder, encoder="lsa", teach=0.0
    ...     )
    ...     text = project.next()
    ...     project.label(text.key, "rail" if "trains" in text.text else "fruit")
    ...     print(project)
    ...     project.close()
    AnnotationProject(fruit, rail; 1 of 4 texts labelled, 1 of them in the random sample)
    """

    def __init__(
        self,
        corpus: Any,
        codebook: Any,
        folder: str | os.PathLike[str],
        *,
        kind: str | None = None,
        pairs: bool = False,
        encoder: Any = "all-MiniLM-L6-v2",
        strategy: str = "uncertainty",
        teach: float = 0.5,
        n_test: int = 50,
        overlap: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        # All arguments are checked before a folder is created.
        checked_choice(strategy, "strategy", STRATEGIES)
        if codebook is not None:
            codebook = read_labels(codebook)
        chosen: dict[str, Any] = {
            "teach": teach,
            "n_test": n_test,
            "overlap": overlap,
            "random_state": random_state,
        }
        design = StudyDesign(**chosen).checked()
        texts = StudyTexts(as_corpus(corpus))
        if kind is not None:
            checked_choice(kind, "kind", KINDS)

        journal = Journal(Path(os.path.realpath(folder)))
        try:
            has_pairs = pairs
            if journal.events:
                has_pairs = Records(journal.events).pairs
            if pairs and not has_pairs:
                expected = "left out: the study in the folder has single texts"
                raise InputError("pairs", expected, pairs)

            vectors = texts.encode(encoder, has_pairs)
            if not journal.events:
                _begin(journal, texts, codebook, design, labels_kind=kind or "single", pairs=pairs)

            records = Records(journal.events)
            _check_unchanged(records, codebook, kind, design)
        except BaseException:
            journal.close()
            raise

        self.state = StudyState(texts, vectors, journal, records)
        self.loop = TeachingLoop(self.state, strategy)
        self.decisions = journal_notes(self.state)
        self.corpus = texts.corpus
        self.keys = texts.keys
        self.kind = records.kind
        self.design = records.design
        self.codebook = records.labels

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        corpus: Any,
        *,
        encoder: Any = "all-MiniLM-L6-v2",
        strategy: str = "uncertainty",
    ) -> Self:
        """Open an existing study with the corpus that it was begun with.

        Parameters
        ----------
        folder : path
        corpus : Corpus, or any input of `Corpus`
        encoder : str, path, Encoder or ndarray of shape (n_rows, n_dimensions)
        strategy : {"uncertainty", "diversity", "random"}

        Returns
        -------
        AnnotationProject

        Raises
        ------
        InputError
            The folder is not that of a study.
        """
        if not isinstance(folder, str | os.PathLike) or not Path(folder).is_dir():
            remedy = "load(folder, corpus) opens one; AnnotationProject(...) begins one"
            raise InputError("folder", "the folder of a study", folder, remedy)
        return cls(corpus, None, folder, encoder=encoder, strategy=strategy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the background model and let other processes open the study."""
        self.loop.close()
        self.state.journal.close()

    def next(self, *, by: str = "annotator", holder: str | None = None) -> TextToLabel | None:
        """Return the next text for an annotator, or None at the end of the corpus.

        Parameters
        ----------
        by : str
            The annotator.
        holder : str, optional
            Holder of the reservation, such as a browser tab: nobody else gets the text until it is
            answered. By default the annotator, who then has one text at a time.
        """
        return self.loop.next(checked_annotator(by), holder)

    def label(
        self,
        key: str,
        labels: str | Sequence[str] = (),
        *,
        by: str = "annotator",
        unsure: bool = False,
        note: str = "",
        stream: str | None = None,
        spans: Sequence[tuple[str, int, int]] = (),
    ) -> None:
        """Record a label on disk; a later label replaces it.

        Parameters
        ----------
        key : str
            Key of the text, from `next`.
        labels : str or sequence of str
            One label; for "several" any number of labels; for "spans" none.
        by : str
            The annotator.
        unsure : bool
        note : str
        stream : str, optional
            Stream of the text; by default the stream for which `next` returned it, or "teach".
        spans : sequence of (label, begin, end)
            For "spans": parts of the text that do not overlap, in characters.

        Raises
        ------
        InputError
            An unknown text, label or stream, or a journal that cannot be written.
        """
        names = _names_in(labels)
        choices = self.state.records.names
        kind = self.kind
        self._check_key(key)
        parts = checked_spans(spans, self.state.texts.text(key), choices)

        if parts and kind != "spans":
            raise InputError("spans", 'left out, except for kind="spans"', list(parts))
        if names and kind == "spans":
            raise InputError("labels", 'left out for kind="spans"', list(names))

        names = names or tuple(name for name, _, _ in parts)
        for name in names:
            checked_choice(name, "labels", choices)
        if not self.state.is_multilabel and len(names) != 1:
            raise InputError("labels", "one label", list(names))

        if stream is not None:
            checked_choice(stream, "stream", STREAMS)

        ordered = [name for name in choices if name in names]
        fields: dict[str, Any] = {"labels": ordered, "unsure": bool(unsure), "note": note}
        if kind == "spans":
            fields["spans"] = parts
        self._answer(key, by, stream, fields)

    def skip(self, key: str, *, by: str = "annotator", note: str = "") -> None:
        """Skip a text; it comes back at the end of the study."""
        fields: dict[str, Any] = {"labels": None, "unsure": False, "note": note}
        if self.kind == "spans":
            fields["spans"] = ()
        self._answer(key, by, None, fields)

    def _answer(self, key: str, by: str, stream: str | None, fields: dict[str, Any]) -> None:
        self._check_key(key)
        checked_annotator(by)
        note = fields["note"]
        if not isinstance(note, str) or len(note) > MAX_NOTE or replace_surrogates(note) != note:
            raise InputError("note", f"text of at most {MAX_NOTE:,} characters", note)
        texts = self.state.texts
        id = replace_surrogates(texts.documents.ids[texts.row_of[key]])
        with self.state.lock:
            stream = stream or self.loop.stream_of(key)
            self.state.record(
                "answer", text=key, id=id, by=by, stream=stream, n_texts=len(texts), **fields
            )
            self.loop.answered(key)

    def _check_key(self, key: str) -> None:
        if not isinstance(key, str) or key not in self.state.texts.row_of:
            raise InputError("key", "the key of a text of the corpus", key)

    def undo(self, *, by: str = "annotator", holder: str | None = None) -> TextToLabel | None:
        """Undo the last answer of an annotator and return its text, None without any answer.

        The previous answer to the text, if any, is valid again.
        """
        records = self.state.records
        checked_annotator(by)
        with self.state.lock:
            if not records.texts_by.get(by):
                return None
            key = records.texts_by[by][-1]
            stream = records.stream_of[key]
            self.state.record("undo", by=by)
            if key not in self.state.texts.row_of:
                return None
            return self.loop.reserve(key, holder or by, stream)

    def queue(self, keys: Sequence[str]) -> int:
        """Put texts, by key or id, at the head of the queue, and return its length.

        Queued texts without an answer belong to the *teach* stream.

        Raises
        ------
        InputError
            A text is not in the corpus; the message names its row.
        """
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            raise InputError("keys", "a list of keys or ids of texts", keys)

        texts = self.state.texts
        rows = zip(texts.corpus.ids, texts.of_row.tolist(), strict=True)
        key_by_id = {id: texts.keys[row] for id, row in rows if row >= 0}
        row_of = texts.row_of

        requested: list[str] = []
        for row, key in enumerate(keys):
            if not isinstance(key, str) or (key not in row_of and key not in key_by_id):
                raise InputError("keys", "keys or ids of texts of the corpus", key, row=row)
            requested.append(str(key) if key in row_of else key_by_id[key])

        with self.state.lock:
            self.loop.requested = list(dict.fromkeys([*requested, *self.loop.requested]))
            return len(self.loop.requested)

    def merge(self, folder: str | os.PathLike[str]) -> int:
        """Add the answers of a study of the same texts in another folder.

        Each answer keeps its annotator, stream and time. Answers that are present are left out, so
        a folder can be merged repeatedly. Of two answers of one annotator to a text, the later one
        is valid. Returns the number of new answers. The other study is only read.

        Raises
        ------
        InputError
            The other study has another kind or other labels.
        CorruptFileError
            The journal of the other study is damaged, or another file.
        """
        events = read_journal(Path(os.path.realpath(folder)))
        if not events:
            raise InputError("folder", "the folder of a study with events", os.fspath(folder))

        other = Records(events)
        records = self.state.records
        if (other.kind, other.names) != (records.kind, records.names):
            expected = f"a study of {records.kind} labels {', '.join(records.names)}"
            description = f"{other.kind}: {', '.join(other.names)}"
            raise InputError("folder", expected, found=description)

        answers = [answer for text in other.answers for answer in other.current(text).values()]
        new: list[dict[str, Any]] = []
        with self.state.lock:
            for answer in sorted(answers, key=lambda answer: answer.number):
                name = checked_annotator(answer.by)
                present = records.current(answer.text).get(name)
                if present is None or present.time < answer.time:
                    fields = {"event": "answer", "n_texts": len(self.state.texts), **vars(answer)}
                    del fields["number"]
                    new.append(fields)
            self.state.record_all(new)

        return len(new)

    def classifier(self, estimator: TextClassifier | None = None) -> TextClassifier:
        """Return a text classifier fitted to all labels but rare ones and those of test texts.

        Parameters
        ----------
        estimator : TextClassifier, optional
            An unfitted classifier, which stays as it is; by default one of the method "auto", or
            "frozen" for pairs. Its head, classes and pairs are those of the study.

        Returns
        -------
        TextClassifier

        Raises
        ------
        InputError
            No text outside the test part has a label.
        """
        return _estimates.classifier(self.state, estimator)

    def measurement(self) -> Measurement:
        """Return the count labels with predictions of all distinct texts.

        The model is cross-fitted. ``embedtopics.inference.shares(project)`` and ``regress`` take it
        from the project, with the columns of the corpus; its name there is "class".

        Returns
        -------
        Measurement

        Raises
        ------
        InputError
            Fewer than 2 count texts have a label.
        """
        return _estimates.measurement(self.state)

    def quality(self) -> pd.DataFrame:
        """Return the scores of the model on texts that it was not fitted on.

        Accuracy, and recall and precision of each label, with Wilson's 95 % intervals, on the
        cross-fitted count texts and on the test texts. Columns part, class (None for all), metric,
        value, low, high and n.
        """
        return _estimates.quality(self.state)

    def stopping(self, recall: float = 0.95) -> Stopping:
        """Return the recall test of each label and the effect of 50 further count labels.

        Parameters
        ----------
        recall : float
            Target share of the texts of a label.
        """
        return _estimates.stopping(self.state, recall, partial(shares, self))

    def report(self) -> StudyReport:
        """Return codebook, progress, quality, shares, agreement and examples."""
        return _estimates.report(self.state, self.decisions, partial(shares, self))

    def agreement(self) -> AnnotatorAgreement:
        """Return Krippendorff's alpha of the annotators, and the texts that they disagree on."""
        return _estimates.agreement(self.state)

    def _summary(self) -> str:
        progress = self.progress()
        names = ", ".join(self.state.records.names)
        return (
            f"{names}; {progress['labelled']:,} of {progress['texts']:,} texts labelled, "
            f"{progress['sample']:,} of them in the random sample"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each text and annotator.

        Columns: id, key, text (None if it left the corpus), label (a list for "several" and
        "spans"; None if skipped), spans (for that kind), unsure, note, annotator, stream,
        probability (of being drawn, for the random sample of count texts), test, time.
        """
        return _estimates.to_frame(self.state)

    def labels(self) -> pd.Series:
        """Return the label of each row of the corpus, None for none."""
        import pandas as pd

        labelled, texts = self.state.labelled(), self.state.texts
        keys = [texts.keys[row] if row >= 0 else "" for row in texts.of_row.tolist()]
        values = [_estimates.plain_labels(labelled.get(key), self.kind) for key in keys]
        return pd.Series(values, index=self.corpus.index, dtype=object, name="label")

    def export(self, out: str | os.PathLike[str]) -> Exported:
        """Write `to_frame` to a .csv, .parquet or .jsonl file.

        In a .csv file, "|" separates the labels of a text. For `datasets`, use
        ``Dataset.from_pandas(study.to_frame())``.
        """
        frame = self.to_frame()
        if "spans" in frame:
            frame["spans"] = frame["spans"].map(json.dumps)
        if self.state.is_multilabel and Path(out).suffix in (".csv", ".tsv"):
            frame["label"] = [one if one is None else "|".join(one) for one in frame["label"]]
        return write_table(frame, os.fspath(out), name="labels")

    def export_journal(self, out: str | os.PathLike[str]) -> Path:
        """Write the journal as lines of JSON, to read it or to keep it in a repository.

        Every event is a line with its time and a digest, which depends on all lines before it. A
        folder that holds these lines alone, as ``journal.jsonl``, is opened like the study.
        """
        with self.state.lock:
            rows = self.state.journal.rows()
        return write_lines(rows, out)

    def progress(self) -> dict[str, int]:
        """Return the numbers of distinct texts by status.

        Keys: texts, answered, labelled, teach and count (streams of the answered texts), sample
        (labelled count texts), sample_without_label, and test.
        """
        return self.state.progress()


def _names_in(labels: Any) -> tuple[Any, ...]:
    """Return one label or several as a tuple, as the codebook spells them."""
    if isinstance(labels, Mapping | bytes) or not isinstance(labels, Iterable):
        raise InputError("labels", "a label or a list of labels", labels)
    names = (labels,) if isinstance(labels, str) else tuple(labels)
    if any(isinstance(name, PredictedLabel) for name in names):
        remedy = "pass a language model's labels to a Measurement as predictions"
        raise InputError("labels", "given by people", labels, remedy)
    return tuple(spell_name(name) if isinstance(name, str) else name for name in names)


def _begin(
    journal: Journal, texts: StudyTexts, codebook: Any, design: StudyDesign, **fields: Any
) -> None:
    """Write the header of a new study."""
    if codebook is None:
        raise InputError("codebook", "given for a new study", None)
    check_new_codebook(codebook)
    order = count_order(texts.keys, int(design.random_state or 0))
    n_test = min(design.n_test, len(texts) // 10)
    # Every second count text is a test text, so that the model does not wait for the test part.
    test = [texts.keys[row] for row in order[: 2 * n_test : 2]]
    fields |= {"labels": as_json(codebook), "design": vars(design), "test": test}
    fields["n_texts"] = len(texts)
    journal.add("study", kind=KIND, version=VERSION, **fields)


def _check_unchanged(
    records: Records,
    codebook: tuple[Label, ...] | None,
    kind: str | None,
    design: StudyDesign,
) -> None:
    """Refuse arguments that differ from the study in the folder."""
    same = "that of the study in the folder"
    if codebook is not None and codebook != records.labels:
        names = [label.name for label in codebook]
        raise InputError("codebook", f"{same}, {list(records.names)}", names, "pass None")
    if kind is not None and kind != records.kind:
        raise InputError("kind", f"{same}, {records.kind!r}", kind)

    # A default looks like an argument left out, and stands for what the study has.
    for name, value in vars(design).items():
        recorded = getattr(records.design, name)
        if value not in (recorded, getattr(StudyDesign, name)):
            raise InputError(name, f"{same}, {recorded}", value, "leave it out")
