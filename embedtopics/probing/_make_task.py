"""Tasks of files and treebanks: what a row of a file is, and which task its labels make."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embedtopics._utils.checks import checked_choice
from embedtopics.errors import InputError
from embedtopics.probing._tasks import (
    SENTENCE_TASKS,
    by_part,
    sentence_task,
    text_task,
    token_task,
)
from embedtopics.probing._treebanks import (
    WORD_NAMES,
    first_line,
    has_suffix,
    is_table_of_words,
    read_treebank,
)
from embedtopics.probing.results import ProbeTask, Treebank
from embedtopics.protocols import RandomState

Source = str | os.PathLike[str] | Treebank
Sources = Source | Sequence[Source] | Mapping[str, Source]

TEXT_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")
"""Files whose rows are texts, whatever their columns."""


def make_task(
    source: Sources, task: str, *, unit: str | None = None, random_state: RandomState = 0
) -> ProbeTask:
    r"""Make a task for `probe`: texts with a label for each word, or one for each text.

    Parameters
    ----------
    source : path, Treebank, sequence of these, or mapping of str to these
        Treebanks and tables of words as for `read_treebank`; or tables of labelled texts: jsonl,
        json or parquet, or csv and tsv, with a column "text". Of a csv or tsv file, the header says
        which: "form", "token" or "word" is a column of words. Files may be compressed (.gz). A
        mapping gives the parts: "train", "test", and optionally "dev". Without parts, a hash of the
        content splits the sentences or texts: 80 % to train, 10 % each to dev and test.
    task : str
        What is predicted.

        Of words : a column, such as "upos", "xpos", "deprel" or the "tag" of named entities; or a
        key of a column, such as "feats:Number" or "misc:Gloss". "_" is no label.

        Of texts : the column of the labels, such as the acceptability of a sentence (CoLA).

        "sentence length" : number of words of the sentences of a treebank, in six bins of equal
        width.

        "tree depth" : maximum number of steps from the root of the dependency tree to a word, for
        the three consecutive depths that keep most sentences. In each part all classes have
        the same distribution of lengths, which would otherwise predict the depth.

        "bigram shift" : whether two neighboring words are exchanged. Each sentence occurs once,
        intact or shifted, with spaces between words; the first word and punctuation keep their
        places.
    unit : {"word", "text"}, optional
        What is labelled, if the source allows both: a file with a column of words and a column of
        texts, or a treebank with a column of the name of a task on sentences.
    random_state : int, Generator or None
        Seed of the split, and of the hashes that select sentences.

    Returns
    -------
    ProbeTask
        With the unit "word" or "text". Sentences of the train part that also occur in test or dev
        are left out, and sentences of dev that also occur in test. In tasks on sentences all
        classes have the same size in each part, no sentence occurs twice, and sentences have 5 to
        28 words, as those of SentEval.

    Raises
    ------
    InputError
        If a file cannot be read, a column does not exist, a part has no labels, all labels are
        equal, the treebank lacks heads, or `unit` is needed.

    References
    ----------
    Conneau, Kruszewski, Lample, Barrault and Baroni, "What you can cram into a single $&!#* vector:
    Probing sentence embeddings for linguistic properties", ACL 2018, section 2. Warstadt, Singh and
    Bowman, "Neural Network Acceptability Judgments", TACL 7, 2019.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import embedtopics as et
    >>> temporary = tempfile.TemporaryDirectory()
    >>> path = Path(temporary.name) / "words.tsv"
    >>> nouns = ["Cats", "Dogs", "Birds", "Bees"]
    >>> sentences = [f"{noun}\tNOUN\nsleep\tVERB\n" for noun in nouns]
    >>> _ = path.write_text("\n".join(["form\tupos", *sentences]), "utf-8")
    >>> task = et.probing.make_task(path, "upos")
    >>> task
    ProbeTask('upos': 8 labels of words, 4 texts)
    >>> sorted(task.to_frame()["part"])
    ['dev', 'test', 'train', 'train']
    >>> temporary.cleanup()
    """
    if unit is not None:
        checked_choice(unit, "unit", ("word", "text"))
    if not isinstance(task, str):
        remedy = "call et.probing.make_task(source, task)"
        raise InputError("task", "the name of a column or of a task", task, remedy)

    sources = _by_part(source)
    units = {_unit_of_rows(one, unit) for _, one in sources}
    if len(units) > 1:
        raise InputError("source", "files of one kind", found="rows that are words, and texts")

    if units == {"text"}:
        files = [(part, one) for part, one in sources if not isinstance(one, Treebank)]
        return text_task(files, label=task, random_state=random_state)

    banks = [
        (part, one if isinstance(one, Treebank) else read_treebank(one)) for part, one in sources
    ]
    if _labels_sentences(banks, task, unit):
        return sentence_task(banks, task, random_state=random_state)
    return token_task(banks, task, random_state=random_state)


def _by_part(source: Any) -> list[tuple[str, Source]]:
    """Return each file or treebank with its part, "" where none are given."""
    if isinstance(source, Mapping):
        sources = by_part(source, "source")
    elif isinstance(source, str | os.PathLike | Treebank):
        sources = [("", source)]
    elif isinstance(source, Sequence):
        sources = [("", one) for one in source]
    else:
        sources = []

    is_known = [isinstance(one, str | os.PathLike | Treebank) for _, one in sources]
    if not sources or not all(is_known):
        expected = "a path, a Treebank, several of them, or a mapping of the parts to them"
        raise InputError("source", expected, source)
    return sources


def _unit_of_rows(source: Source, unit: str | None) -> str:
    """Return what a row of a file is, "word" or "text", by its name and its header."""
    if isinstance(source, Treebank):
        return "word"
    if has_suffix(source, TEXT_SUFFIXES):
        if unit == "word":
            raise InputError("unit", f'"text" for {Path(source).name}', unit)
        return "text"
    if not is_table_of_words(source):
        return "word"

    delimiter = "," if has_suffix(source, (".csv",)) else "\t"
    names = [
        name.strip() for name in next(csv.reader([first_line(source)], delimiter=delimiter), [])
    ]
    has_words = any(name in names for name in WORD_NAMES)
    has_texts = "text" in names
    if has_words and has_texts and unit is None:
        problem = f"{Path(source).name} with columns of words and of texts"
        raise InputError("unit", '"word" or "text"', remedy='pass unit="word"', found=problem)
    if has_texts and (unit == "text" or not has_words):
        return "text"
    return "word"


def _labels_sentences(banks: Sequence[tuple[str, Treebank]], task: str, unit: str | None) -> bool:
    """Return whether a task labels the sentences of treebanks."""
    if unit is None and task in SENTENCE_TASKS:
        named = [bank.source for _, bank in banks if task in bank.columns]
        if named:
            problem = f"{named[0]} with a column {task!r}"
            raise InputError("unit", '"word" or "text"', remedy='pass unit="text"', found=problem)
        return True
    return unit == "text"
