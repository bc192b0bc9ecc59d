"""Stop words of languages, stems, and function words of a corpus."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from embedtopics.terms._counts import count_by_topic, count_holders, count_words
from embedtopics.terms._tokens import PLAIN, tokenize, words_of
from embedtopics.terms.results import TokenStream, WordRules

_NOT_STOP_WORDS = {
    # The English and French lists come partly from old web logs, and hold nouns that can be the
    # subject of a topic.
    "en": (
        "bill cell computer copy cry date fire group groups homepage html http information interest"
        " interests internet invention member members microsoft mine ml netscape order ordered"
        " orders page pages problem problems proud rail research room rooms root site sites state"
        " states system systems tv web website webpage world young younger youngest test tests"
        " text tip trillion million billion home link links"
        " caption click index int key keys length line novel null ring sec shell value wells width"
    ),
    "fr": "droite état états force parole personne personnes pièce valeur",
}


_ACCENTS = str.maketrans("αεηιουω", "άέήίόύώ")
_CYRILLIC = str.maketrans("abvgdđežzijklmnoprstćufhcčš", "абвгдђежзијклмнопрстћуфхцчш")

_ONE_LIST = ("de", "en", "fr", "ms", "ru")
"""Languages whose second list holds nouns, such as Russian *water, car*."""


def stop_words_for(
    languages: Iterable[str], *, general: bool = True, rules: WordRules = PLAIN
) -> tuple[str, ...]:
    """Return the stop words of languages; `general` adds words such as French *heures, dit*.

    The lists are the union of those of the ``stop-words`` package (BSD licence, 33 languages) and
    of ``stopwordsiso`` (MIT licence, 58 languages; not for `_ONE_LIST`). `tokenize` splits them:
    French ``d'`` becomes ``d``. Nouns in a list by mistake, such as *computer*, are left out.
    """
    import stopwordsiso
    from stop_words import safe_get_stop_words

    words: set[str] = set()
    for code in languages:
        added = general_words().get(code, "") if general else ""
        language_words = set(safe_get_stop_words(code))
        if not language_words or code not in _ONE_LIST:
            language_words |= stopwordsiso.stopwords(code)
        if code in ("bs", "sr"):  # no list has them; the words are nearly those of Croatian
            latin = stopwordsiso.stopwords("hr")
            cyrillic = "\n".join(latin)
            for letters, letter in (("lj", "љ"), ("nj", "њ"), ("dž", "џ")):
                cyrillic = cyrillic.replace(letters, letter)
            language_words |= latin | set(cyrillic.translate(_CYRILLIC).split())
        if code == "el":  # the lists omit accents; a word has one
            language_words |= {
                word[:i] + word[i].translate(_ACCENTS) + word[i + 1 :]
                for word in language_words
                for i in range(len(word))
            }
        if language_words or added:  # titles of works are English in texts of every language
            language_words |= {"of", "the"}
        listed = tokenize([*sorted(language_words), added], rules=rules).words
        words |= set(listed) - set(_NOT_STOP_WORDS.get(code, "").split())
    return tuple(sorted(words))


@lru_cache(maxsize=1)
def general_words() -> Mapping[str, str]:
    """Return general words by language; their file documents how they were found."""
    listed = files("embedtopics.terms").joinpath("general_words.txt").read_text("utf-8")
    lines = "\n".join(line for line in listed.splitlines() if not line.startswith("#"))
    parts = re.split(r"^(\w+):", lines, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


Stems = tuple[tuple[str, ...], ...]
"""Stems of a term's words, in order, for each language."""

_ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german",
    "el": "greek", "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


def stems_of(term: str, languages: Iterable[str]) -> Stems:
    """Return the stems of a term's words, by each language's Snowball stemmer."""
    words = term.lower().split(" ")
    stemmers = [_stemmer(code) for code in languages] or [str]
    return tuple(tuple(map(stem, words)) for stem in stemmers)


def repeats(first: Stems, second: Stems) -> bool:
    """Return whether the first or last stem of one term occurs in the other, in any language."""
    return any(
        a[0] in b or a[-1] in b or b[0] in a or b[-1] in a
        for a, b in zip(first, second, strict=True)
    )


@lru_cache(maxsize=64)
def _stemmer(code: str) -> Callable[[str], str]:
    """Return a memoized stemmer; Snowball's takes about 20 microseconds a word."""
    import snowballstemmer

    # The algorithms depend on the installed version.
    algorithm = _ALGORITHMS.get(code)
    if algorithm not in snowballstemmer.algorithms():
        return str
    stemmer = snowballstemmer.stemmer(algorithm)
    lock = Lock()

    @lru_cache(maxsize=65_536)
    def stem(word: str) -> str:
        # A stemmer holds the word that it works on, which no other thread may replace.
        with lock:
            return str(stemmer.stemWord(word))

    return stem


MIN_SHARE = 0.1
"""Minimum share of the documents that hold a function word."""

MAX_INFORMATION = 0.015
"""Maximum information on the topic, as a share of the maximum for a word of this frequency."""

CONFIDENCE = 1.645
"""Standard errors from the estimate to its upper bound (95 %, one-sided)."""

_SHARE_WITHOUT_LIST, _MOST_TIMES = 0.05, 3.0
"""Function words of a language without a list: minimum share of the documents, and maximum ratio
between the share of a topic and that of all. In five languages (SIB-200: en, es, fr, ru, tr), 3 of
144 such words are in no list; 78 to 100 % of the stop words in as many documents are found."""

_MOST_FREQUENT, _LISTED = 30, 20
"""Number of the most frequent words, and minimum number of them in the lists: 125 of the languages
of SIB-200 have it. Relatives without a list do not, such as Awadhi, which is detected as Hindi."""


def function_words(
    tokens: TokenStream, labels: npt.ArrayLike, languages: Iterable[str] = ()
) -> tuple[str, ...]:
    """Find frequent words whose presence holds almost no information on the topic.

    If the lists lack the most frequent words, those that all topics use at similar rates are added.
    """
    topic = np.asarray(labels)
    members = np.flatnonzero(topic >= 0)
    numbered = np.unique(topic[members], return_inverse=True)[1]
    sizes = np.bincount(numbered)
    if len(sizes) < 2:
        return ()

    holders = count_holders(tokens)
    codes = tuple(languages)
    frequent = np.argsort(-holders, kind="stable")[:_MOST_FREQUENT].tolist()
    words = {tokens.words[i] for i in frequent}
    n_listed = len(words.intersection(stop_words_for(codes, rules=tokens.rules)))
    # English texts often come without their stop words, which are no sign of another language.
    has_lists = not codes or "en" in codes or n_listed >= _LISTED

    share = MIN_SHARE if has_lists else _SHARE_WITHOUT_LIST
    least = max(1.0 if has_lists else 3.0, share * len(members))
    is_frequent = holders >= least  # of all documents
    presence = count_words(tokens, is_frequent)[members]
    presence.data[:] = 1
    is_common = np.bincount(presence.indices, minlength=presence.shape[1]) >= least
    candidates = np.flatnonzero(is_frequent)[is_common]
    document_counts = count_by_topic(presence[:, np.flatnonzero(is_common)], numbered).toarray()

    bound = information_bound(document_counts, sizes, CONFIDENCE)
    n_of_word = document_counts.sum(axis=0)
    is_function = (bound < MAX_INFORMATION) & (n_of_word >= MIN_SHARE * len(members))
    if not has_lists:
        expected = np.maximum(sizes[:, None] * n_of_word / len(members), 1.0)
        # No ratio of a topic exceeds the inverse of its share.
        most_times = min(_MOST_TIMES, 1 + (len(members) / sizes.max() - 1) * 2 / 3)
        is_function |= (document_counts / expected).max(axis=0) <= most_times

    return tuple(tokens.words[i] for i in candidates[is_function].tolist())


def account_names(texts: Iterable[str], tokens: TokenStream) -> tuple[str, ...]:
    """Return the words of `tokens` that mostly stand behind an @, as names of accounts do."""
    named: Counter[str] = Counter()
    for text in texts:
        for name in re.findall(r"@(?<![\w@#]@)(\w+)", text) if "@" in text else ():
            named.update(words_of(name, tokens.rules))
    if not named:
        return ()
    n_of_word = np.bincount(tokens.ids, minlength=len(tokens.words)).tolist()
    pairs = zip(tokens.words, n_of_word, strict=True)
    return tuple(word for word, n in pairs if 2 * named[word] > n > 0)


def information_bound(
    document_counts: npt.NDArray[np.float64], sizes: npt.NDArray[Any], n_errors: float
) -> npt.NDArray[np.float64]:
    """Bound each word's share of information on the topic, (n_words,).

    Counts are (n_topics, n_words), `sizes` (n_topics,). `n_errors` standard errors are added.
    """
    n_topics = len(sizes)
    n_documents = int(sizes.sum())
    share_of_topic = (sizes / n_documents)[:, None]
    mean = np.zeros(document_counts.shape[1])
    mean_square = np.zeros(document_counts.shape[1])
    for cell in (document_counts / n_documents, share_of_topic - document_counts / n_documents):
        # An empty cell adds 0, because p log p tends to 0.
        expected = share_of_topic * cell.sum(axis=0)
        ratio = np.log(np.divide(cell, expected, out=np.ones_like(cell), where=cell > 0))
        mean += (cell * ratio).sum(axis=0)
        mean_square += (cell * ratio**2).sum(axis=0)

    freedom = n_topics - 1
    variance = np.maximum(mean_square - mean**2, 0.0)
    error = np.sqrt(variance / n_documents + freedom / (2 * n_documents**2))
    information = np.maximum(mean - freedom / (2 * n_documents), 0.0) + n_errors * error

    least_entropy = _entropy(np.array([MIN_SHARE]))
    entropy = np.maximum(_entropy(document_counts.sum(axis=0) / n_documents), least_entropy)
    bound: npt.NDArray[np.float64] = information / (entropy * np.log(n_topics))
    return bound


def _entropy(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the entropy, in nats, of an event with this probability."""
    entropy: npt.NDArray[np.float64] = entr(share) + entr(1 - share)
    return entropy
