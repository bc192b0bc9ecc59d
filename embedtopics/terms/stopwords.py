"""Stop words of a language, as the tokeniser writes them."""

from __future__ import annotations

from collections.abc import Iterable

from embedtopics.terms.tokens import tokenize

__all__ = ["stop_words_for"]

_KEPT = {
    # The package's English and French lists are partly made from old web logs and name things
    # that people write about. A topic must be allowed to be about them.
    "en": (
        "bill cell computer copy cry date fire group groups homepage html http information interest"
        " interests internet invention member members microsoft mine ml netscape order ordered"
        " orders page pages problem problems proud rail research room rooms root site sites state"
        " states system systems tv web website webpage world young younger youngest test tests"
        " text tip trillion million billion home link links"
    ),
    "fr": "droite état états force parole personne personnes pièce valeur",
}

_ADDED = {
    # Numbers in letters, which the English list holds and these lack.
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze quinze vingt trente quarante"
    " cinquante soixante cent cents mille",
}


def stop_words_for(languages: Iterable[str]) -> tuple[str, ...]:
    """Return the stop words of some languages.

    The lists are those of the ``stop-words`` package (BSD licence, 33 languages), split by our
    own tokeniser so that they meet the words of a `TokenStream`: French ``d'`` becomes ``d``.
    Nouns that the English and French lists hold by mistake, such as *computer*, are no stop words.

    Parameters
    ----------
    languages : iterable of str
        ISO 639-1 codes; a language without a list adds nothing.

    Returns
    -------
    tuple of str
        Sorted.

    Examples
    --------
    >>> "qu" in stop_words_for(["fr"]), "computer" in stop_words_for(["en"])
    (True, False)
    >>> stop_words_for(["tlh"])
    ()
    """
    from stop_words import safe_get_stop_words

    words: set[str] = set()
    for code in languages:
        listed = tokenize([*safe_get_stop_words(code), _ADDED.get(code, "")]).words
        words |= set(listed) - set(_KEPT.get(code, "").split())
    return tuple(sorted(words))
