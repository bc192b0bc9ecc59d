"""Distil a static encoder from an encoder's vectors of tokens, or of whole texts."""

from __future__ import annotations

from typing import Any

from embedtopics._utils.checks import checked_choice
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.errors import InputError
from embedtopics.training._student import distill_texts
from embedtopics.training._tokens import distill_tokens

METHODS = ("tokens", "texts")


def distill(
    encoder: Any,
    texts: Any = None,
    *,
    method: str = "tokens",
    general: Any = None,
    dimensions: int | None = 256,
    show_progress: bool | None = None,
) -> StaticEncoder:
    """Make a static encoder: a table of token vectors, which reads 10,000 texts a second and more.

    By "tokens", each token of the tokenizer is encoded alone, as in model2vec, in about a minute.
    The vectors are reduced to their principal components and weighted by smooth inverse frequency,
    a / (a + p(token)) (Arora, Liang and Ma 2017, equation 3), so that rare words dominate the mean
    over a text.

    By "texts", the encoder also encodes each text once, and the table is fitted to these vectors:
    it has the least squared distance of the texts' vectors to the encoder's, with a penalty on the
    distance to the table of tokens (ridge regression). The static encoder learns from its texts:
    leave test texts out of `texts` and `general`, or test scores are too high.

    Parameters
    ----------
    encoder : SentenceEncoder, CachedEncoder, or the name or folder of a checkpoint
        Encoder whose checkpoint has a tokenizer.json. For "texts",
        ``SentenceEncoder(precision="int8")`` is twice as fast on a CPU.
    texts : Corpus, or what `Corpus` takes, optional
        Texts in which p is counted. Frequent words that the tokenizer would split, 10,000 or (for
        "texts") 20,000 at most, get their own vectors. By default p is 1 / (rank + 1) in the
        vocabulary (Zipf's law). Method "texts" needs them: a few thousand help, a hundred thousand
        are better.
    method : {"tokens", "texts"}
    general : Corpus, or what `Corpus` takes, optional
        For "texts": other texts to learn from, such as sentences of an encyclopedia. Without them
        the encoder knows only the words of its corpus.
    dimensions : int, optional
        Maximum number of principal components. For "tokens", None keeps the vectors, without
        centring.
    show_progress : bool, optional
        None shows a progress bar in terminals and notebooks.

    Returns
    -------
    StaticEncoder
        `made_from` records the settings; for "texts" also the agreement, the mean cosine with the
        encoder's vectors of held-out texts, after the fit and of the table of tokens. Tokens that
        cannot occur in texts, such as padding, have zero vectors. The same texts in any order and
        the same versions give the same bits.

    Raises
    ------
    InputError
        If `dimensions` is out of range, there are too few texts, or the encoder has no
        tokenizer.json.
    ModelLoadError
        If the encoder cannot be loaded.

    References
    ----------
    S. Arora, Y. Liang and T. Ma, "A simple but tough-to-beat baseline for sentence embeddings",
    ICLR 2017.
    S. Tulkens and T. van Dongen, "Model2Vec: fast state-of-the-art static embeddings", 2024, and
    its Tokenlearn, which fits token means to an encoder's vectors too.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb}" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> static = et.training.distill(encoder, dimensions=8)
    >>> static.encode(["the dog runs"]).shape
    (1, 8)
    >>> folder.cleanup()
    """
    checked_choice(method, "method", METHODS)
    if method == "texts":
        if texts is None:
            raise InputError("texts", 'given for method="texts"', None)
        return distill_texts(
            encoder, texts, general=general, dimensions=dimensions, show_progress=show_progress
        )

    if general is not None:
        raise InputError("general", 'left out for method="tokens"', remedy='pass method="texts"')
    return distill_tokens(encoder, texts, dimensions=dimensions, show_progress=show_progress)
