"""Maps of a word's uses."""

from __future__ import annotations

from collections.abc import Sequence

from embedtopics._word_maps import map_uses
from embedtopics.results import HiddenStates, WordMap

__all__ = ["word_map"]


def word_map(
    states: HiddenStates,
    word: str | Sequence[str],
    layers: str | int | Sequence[int] = "all",
    *,
    max_uses: int = 1000,
) -> WordMap:
    """Lay all uses of a word on one plane for each layer.

    The vectors of the uses are set to length 1, as cosine similarity does, and those of a layer
    are projected on their first two principal components. Each layer's map is then turned and
    mirrored, but not stretched, so that the uses lie as near as they can to where they lie at the
    next layer (orthogonal Procrustes), beginning from the last: a use can be followed from map to
    map. On a second plane, the same for all layers, lie the paths of the uses: that of the first
    two components of all layers' vectors together, each layer's less their mean.

    The distances of two maps are comparable; their axes have no meaning, and what a map shows of
    the variance is given with it. Layer 0 knows nothing of the context: what sets the uses apart
    there is their place in the text, and where an encoder adds none, nothing.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    word : str or sequence of str
        Capitals count as small letters; forms of a word are other words, and can be given too:
        ``["play", "plays", "played"]``.
    layers : "all", int or sequence of int
        Negative numbers count from the last.
    max_uses : int
        More are sampled, by a hash of their texts.

    Returns
    -------
    WordMap

    Raises
    ------
    InputError
        If the word does not occur or has no vector, or there is no such layer.

    Examples
    --------
    >>> found = word_map(states, "bat", layers=[0, 6])  # doctest: +SKIP
    >>> found.coordinates.shape  # doctest: +SKIP
    (2, 31, 2)
    """
    return map_uses(states, word, layers, max_uses)
