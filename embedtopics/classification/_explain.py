"""What a class and a prediction rest on: terms, labelled neighbours, words left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import checked_count
from embedtopics.classification._targets import read_targets
from embedtopics.encoders._base import check_texts
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

_WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")
MOST_WORDS = 200
"""Words of a text that are left out in turn; each is a text to encode."""


def class_terms(
    texts: Sequence[str], y: Any, *, n_terms: int = 10, min_texts: int = 3
) -> pd.DataFrame:
    """Return the words that set each class apart from the others, by weighted log-odds.

    Log-odds of the texts that hold a word, with an informative Dirichlet prior in proportion to
    all texts (Monroe, Colaresi and Quinn 2008, equations 15 to 22).

    Parameters
    ----------
    texts : sequence of str
    y : sequence
        Labels or predictions, such as ``classifier.predict(texts)``; None or NaN for none.
    n_terms : int
        Words of each class.
    min_texts : int
        Texts that must hold a word.

    Returns
    -------
    DataFrame
        Columns class, term, z (in standard errors), n_class and n_others (texts that hold it).
    """
    import pandas as pd

    checked_count(n_terms, "n_terms")
    checked_count(min_texts, "min_texts")
    read, targets = check_texts(texts), read_targets(y, "softmax")
    if len(read) != len(targets.codes):
        found = f"{len(targets.codes):,} labels and {len(read):,} texts"
        raise InputError("y", "one label for each text", found=found)
    counts: list[Counter[str]] = [Counter() for _ in targets.classes]
    for text, code in zip(read, targets.codes.tolist(), strict=True):
        if code >= 0:
            counts[code].update({match.group().casefold() for match in _WORD.finditer(text)})
    total = sum(counts, Counter())
    terms = sorted(term for term, n in total.items() if n >= min_texts)
    everywhere = np.array([total[term] for term in terms], dtype=np.float64)
    prior = everywhere / max(everywhere.sum(), 1) * 500
    rows = []
    for name, of_class in zip(targets.classes.tolist(), counts, strict=True):
        own = np.array([of_class[term] for term in terms], dtype=np.float64)
        others = everywhere - own
        odds = [np.log((n + prior) / (n.sum() + prior.sum() - n - prior)) for n in (own, others)]
        z = (odds[0] - odds[1]) / np.sqrt(1 / (own + prior) + 1 / (others + prior))
        for place in np.argsort(-z, kind="stable")[:n_terms].tolist():
            rows.append((name, terms[place], float(z[place]), int(own[place]), int(others[place])))
    return pd.DataFrame(rows, columns=["class", "term", "z", "n_class", "n_others"])


def nearest_labelled(
    classifier: TextClassifier,
    texts: Sequence[str],
    train: tuple[Sequence[str], Any],
    *,
    k: int = 3,
) -> pd.DataFrame:
    """Return the labelled texts nearest to each text, by the cosine of the classifier's vectors.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    texts : sequence of str
    train : pair of texts and labels
    k : int
        Neighbours of each.

    Returns
    -------
    DataFrame
        Columns row (of `texts`), predicted, rank, label, similarity and text.
    """
    import pandas as pd

    from embedtopics.neighbors._graph import nearest, unit_rows

    check_is_fitted(classifier, "head_")
    learned, targets = classifier._read(*train, classifier.classes_)
    if classifier.head == "multilabel":
        raise InputError("classifier", "of one label a text", classifier)
    read = check_texts(texts)
    vectors = []
    for part in (read, learned):
        made = classifier._vectors(part)
        dense = made.toarray() if hasattr(made, "toarray") else made
        vectors.append(unit_rows(dense, keep_zeros=True))
    places, similarities = nearest(vectors[0], vectors[1], checked_count(k, "k"))
    predicted = classifier.predict(read).tolist()
    names = classifier.classes_[targets.codes]
    rows = [
        (row, predicted[row], rank + 1, names[place].item(), float(similarity), learned[place])
        for row in range(len(read))
        for rank, (place, similarity) in enumerate(
            zip(places[row].tolist(), similarities[row], strict=True)
        )
    ]
    columns = ["row", "predicted", "rank", "label", "similarity", "text"]
    return pd.DataFrame(rows, columns=columns)


def occlusion(classifier: TextClassifier, text: str, *, target: Any = None) -> pd.DataFrame:
    """Return by how much the probability of a class falls where a word is left out.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    text : str
        Its first 200 words are left out one at a time.
    target : str or int, optional
        The class; by default the predicted one.

    Returns
    -------
    DataFrame
        Columns word, begin (character), change: what leaving the word out takes from the
        probability; the largest first.
    """
    import pandas as pd

    check_is_fitted(classifier, "head_")
    if not isinstance(text, str) or not (words := list(_WORD.finditer(text))[:MOST_WORDS]):
        raise InputError("text", "a text with words", text)
    without = [text[: word.start()] + text[word.end() :] for word in words]
    found = classifier.predict_proba([text, *without])
    names = classifier.classes_.tolist()
    if target is not None and target not in names:
        raise InputError("target", f"one of the classes {names}", target)
    place = int(found[0].argmax()) if target is None else names.index(target)
    change = found[0, place] - found[1:, place]
    order = np.argsort(-change, kind="stable")
    return pd.DataFrame({
        "word": [words[i].group() for i in order], "begin": [words[i].start() for i in order],
        "change": change[order],
    })  # fmt: skip
