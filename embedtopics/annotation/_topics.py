"""Studies of topics: code a concept in and around topics, answer questions on topics."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_count, is_whole, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.annotation._codebook import Label, permanent_numbers
from embedtopics.annotation._project import AnnotationProject
from embedtopics.annotation._sheets import score_sheet
from embedtopics.annotation.results import Sheet, SheetScore
from embedtopics.corpus._corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.inference import Measurement
from embedtopics.inference._power import allocate
from embedtopics.protocols import Int64Array, RandomState
from embedtopics.topics.results import TopicResult

STRATA = ("topic", "border", "rest")
EXPECTED = (0.7, 0.3, 0.02)
"""Expected shares of the concept in the strata, by which the texts to code are allocated."""


class TopicStudy(AnnotationProject):
    """A study of the texts drawn by `code_topic`, which quality and recall describe.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = et.annotation.code_topic(model, 0, folder, concept="heating", n_texts=60)
    ...     print(study.concept, study.topics, len(study.corpus))
    ...     study.close()
    heating (0,) 60
    """

    result: TopicResult
    topics: tuple[int, ...]
    concept: str
    strata: Int64Array  # of each distinct text of the result

    def measurement(self) -> Measurement:
        """Return the answers, with the membership in the topics as prediction.

        Raises
        ------
        InputError
            A stratum (the topics, their border, the rest) has fewer than two answers.
        """
        distinct = self.result.distinct
        document = distinct.of_row
        coded = dict(zip(self.corpus.ids, self.labels(), strict=True))
        of_document = [coded.get(self.result.corpus.ids[row]) for row in distinct.first_rows]
        gold = [of_document[one] if one >= 0 else None for one in document.tolist()]
        strata = np.where(document >= 0, self.strata[document], 0)
        return Measurement.from_topics(
            self.result, self.topics, gold, strata=strata, name=self.concept
        )


def code_topic(
    result: FittedTopics,
    topics: int | str | Sequence[int | str],
    folder: str | os.PathLike[str],
    *,
    concept: str | None = None,
    n_texts: int = 200,
    random_state: RandomState = 0,
) -> TopicStudy:
    """Draw texts in which people code a concept, so that its shares can be estimated.

    Topics split and merge concepts. The texts are drawn at random within three strata: the topics,
    their border (texts in other topics or in none with the largest shares of the topics, as many as
    the topics have), and the rest. `embedtopics.annotation.serve` shows the texts on a page, and
    `measurement` of the study estimates from the answers.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topics : int, str, or sequence of these
        The topics that belong to the concept, by id or name.
    folder : path
        Folder of the answers. The same arguments open an existing study, and a larger `n_texts`
        adds texts to it.
    concept : str, optional
        What the texts are about; by default the names of the topics.
    n_texts : int
        Texts to code.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    TopicStudy

    Raises
    ------
    InputError
        There is no such topic, or there are fewer texts than `n_texts`.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = et.annotation.code_topic(model, 0, folder, concept="heating", n_texts=60)
    ...     print(study)
    ...     study.close()
    TopicStudy(yes, no; 0 of 60 texts labelled, 0 of them in the random sample)
    """
    result = result_of(result)
    ids = _topic_ids(result, topics)
    concept = concept or " or ".join(result.topics[topic_id].name for topic_id in ids)
    strata = _strata(result, ids)

    sizes = np.bincount(strata, minlength=len(STRATA))
    if sizes.sum() < checked_count(n_texts, "n_texts", 2 * len(STRATA)):
        raise InputError("n_texts", f"at most {sizes.sum():,}, the number of texts", n_texts)

    n_drawn = allocate(n_texts, sizes, EXPECTED)
    seed = resolve_seed(random_state)
    keys = [f"{a:016x}{b:016x}" for a, b in result.distinct.hashes.tolist()]
    order = np.argsort(permanent_numbers(keys, seed, "count"), kind="stable")
    drawn = [order[strata[order] == stratum][:n] for stratum, n in enumerate(n_drawn)]
    documents = np.sort(np.concatenate(drawn))

    labels = [
        Label("yes", "y", f"The text is about {concept}."),
        Label("no", "n", f"The text is not about {concept}."),
    ]
    study = TopicStudy(
        result.corpus.take(result.distinct.first_rows[documents]),
        labels,
        folder,
        encoder=np.asarray(result.embeddings[documents]),
        strategy="random",
        teach=0.0,
        n_test=0,
        random_state=seed,
    )
    if study.design.random_state != seed:
        study.close()
        expected = f"that of the study in the folder, {study.design.random_state}"
        raise InputError("random_state", expected, seed)

    study.result = result
    study.topics = ids
    study.concept = concept
    study.strata = strata
    return study


def _topic_ids(result: TopicResult, topics: Any) -> tuple[int, ...]:
    """Return the ids of one topic or several, given by id or name."""
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        topics = [topics]
    id_of: dict[Any, Any] = {topic.name: topic.topic_id for topic in result.topics}
    ids = [id_of.get(topic, topic) if isinstance(topic, str) else topic for topic in topics]
    for topic_id in ids or [None]:
        if not is_whole(topic_id) or not 0 <= topic_id < result.n_topics:
            expected = f"names or ids of topics, 0 to {result.n_topics - 1}"
            raise InputError("topics", expected, topic_id)
    return tuple(int(topic_id) for topic_id in ids)


def _strata(result: TopicResult, topics: tuple[int, ...]) -> Int64Array:
    """Return the stratum of each distinct text."""
    is_inside = np.isin(result.clustering.labels, topics)
    share = np.asarray(result.memberships[:, list(topics)].sum(axis=1)).ravel()
    outside = np.flatnonzero(~is_inside)
    nearest = outside[np.argsort(-share[outside], kind="stable")[: is_inside.sum()]]
    strata = np.where(is_inside, 0, 2)
    strata[nearest] = 1
    return strata


class SheetStudy(AnnotationProject):
    """A study whose texts are the questions of sheets, and whose labels number their options.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> sheets = et.annotation.validation_sheets(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = et.annotation.ask(sheets, folder)
    ...     text = study.next()
    ...     study.label(text.key, "1")
    ...     print(len(study.scores()))  # one sheet has an answer
    ...     study.close()
    1
    """

    key: pd.DataFrame  # of all sheets, by question
    question_of: dict[str, str]  # by the key of its text

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
        """Record an answer, the number of an option; see `AnnotationProject.label`."""
        n_options = int(self.key["n_options"].get(self.question_of.get(key), len(self.codebook)))
        names = [labels] if isinstance(labels, str) else labels
        if any(name.isdecimal() and int(name) > n_options for name in names):
            raise InputError("labels", f"an option, 1 to {n_options}", labels)
        super().label(key, labels, by=by, unsure=unsure, note=note, stream=stream, spans=spans)

    def scores(self) -> tuple[SheetScore, ...]:
        """Return the score of each sheet that has answers, see `score_sheet`."""
        answers = self.to_frame().dropna(subset="label")
        answers = answers.rename(columns={"label": "answer", "annotator": "coder"})
        answers["question"] = answers["key"].map(self.question_of)
        scores = []
        for _, key in self.key.groupby("task", sort=False):
            with suppress(InputError):  # no answers yet
                of_sheet = answers[answers["question"].isin(key.index)]
                scores.append(score_sheet(of_sheet, key.reset_index()))
        return tuple(scores)


def ask(sheets: Sequence[Sheet], folder: str | os.PathLike[str]) -> SheetStudy:
    """Put the questions of sheets on a page, for any number of people.

    `embedtopics.annotation.serve` of the study shows them. Answers are stored with the hashes of
    their questions: those to questions that an edit of the topics changed no longer count.

    Parameters
    ----------
    sheets : sequence of Sheet
        See `validation_sheets`.
    folder : path
        Folder of the answers.

    Returns
    -------
    SheetStudy
        With `scores`.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> sheets = et.annotation.validation_sheets(model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = et.annotation.ask(sheets, folder)
    ...     print(study.progress()["answered"], study.progress()["texts"] > 20)
    ...     study.close()
    0 True
    """
    if not isinstance(sheets, Sequence) or not all(isinstance(one, Sheet) for one in sheets):
        remedy = "call et.annotation.ask(et.annotation.validation_sheets(result), folder)"
        raise InputError("sheets", "sheets", sheets, remedy)
    prompts = pd.concat([sheet.prompts for sheet in sheets])
    key = pd.concat([sheet.key for sheet in sheets]).set_index("question")
    study = SheetStudy(
        Corpus(prompts.tolist(), ids=prompts.index.tolist()),
        [str(number) for number in range(1, int(key["n_options"].max()) + 1)],
        folder,
        encoder=np.ones((len(prompts), 1), dtype=np.float32),
        strategy="random",
        teach=0.0,
        n_test=0,
        overlap=1.0,
    )
    ids = study.state.texts.documents.ids
    study.key, study.question_of = key, dict(zip(study.keys, ids, strict=True))
    return study
