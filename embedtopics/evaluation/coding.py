"""A blind sample of texts and topics, for people to say which belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.cooccurrence import refuse_strings
from embedtopics.evaluation.sheets import ANSWER, Sheet, question_id, shown
from embedtopics.results import NOISE

__all__ = ["coding_sample"]


def coding_sample(
    texts: Sequence[str],
    labels: npt.ArrayLike,
    topics: Sequence[Sequence[str]],
    *,
    n_per_topic: int = 10,
    n_decoys: int = 5,
    n_words: int = 8,
    n_characters: int = 1000,
    seed: int = 0,
) -> Sheet:
    """Draw texts with topics, some of them not their own, to be told apart blindly.

    For each topic some of its texts and, as decoys, texts that are not in it. Who does not know
    which is which cannot please the model: the share of the topic's texts that are coded "yes" is
    its precision, and the share of the decoys is what a "yes" is worth.

    Parameters
    ----------
    texts : sequence of str
    labels : array_like of int, shape (n_texts,)
        Topics; -1 for none, whose texts can be decoys.
    topics : sequence of sequence of str
        Words of each topic, best first.
    n_per_topic, n_decoys : int
        Texts of each topic, and of others beside it; all where there are no more.
    n_words : int
        Words by which a topic is shown.
    n_characters : int
        Length at which texts are cut.
    seed : int

    Returns
    -------
    Sheet
        Task "coding": is the text about the topic, "yes" or "no"? The key holds `row` (the text's
        place), `topic`, `in_topic`, and `topic_size`, from which the precision of all topics
        together is weighed.

    Raises
    ------
    InputError
        Where there is no topic, or the lengths do not match.
    """
    import pandas as pd

    refuse_strings(topics)
    topic_of = np.asarray(labels)
    if len(topic_of) != len(texts):
        raise InputError(
            f"texts and labels must be of one length; got {len(texts)} and {len(topic_of)}"
        )
    if n_per_topic < 1 or n_decoys < 0:
        raise InputError(
            f"n_per_topic must be at least 1 and n_decoys at least 0; got {n_per_topic} and "
            f"{n_decoys}"
        )
    present = np.unique(topic_of[topic_of != NOISE]).tolist()
    if not present or present[0] < 0 or present[-1] >= len(topics):
        raise InputError(
            f"labels must name some of the {len(topics)} topics; got {present[:5] or 'none'}"
        )
    pairs: list[tuple[int, int]] = []
    for topic in present:
        rng = np.random.default_rng([seed, topic])
        inside, outside = np.flatnonzero(topic_of == topic), np.flatnonzero(topic_of != topic)
        pairs += [(int(row), topic) for row in rng.permutation(inside)[:n_per_topic]]
        pairs += [(int(row), topic) for row in rng.permutation(outside)[:n_decoys]]
    order = np.random.default_rng(seed).permutation(len(pairs)).tolist()
    names = [", ".join(shown(word, 40) for word in topic[:n_words]) for topic in topics]
    questions: list[dict[str, Any]] = []
    key: list[dict[str, Any]] = []
    for number, place in enumerate(order, start=1):
        row, topic = pairs[place]
        text = shown(texts[row], n_characters)
        name = question_id(number, "coding", text, names[topic])
        common = {"task": "coding", "question": name}
        questions.append(common | {"text": text, "topic": names[topic], ANSWER: ""})
        key.append(
            common
            | {
                "row": row,
                "topic": topic,
                "in_topic": "yes" if topic_of[row] == topic else "no",
                "topic_size": int((topic_of == topic).sum()),
            }
        )
    return Sheet("coding", pd.DataFrame(questions), pd.DataFrame(key))
