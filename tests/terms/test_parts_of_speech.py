"""Words of two tokenisers brought together, and patterns of parts of speech."""

import pytest

from embedtopics.terms._parts_of_speech import (
    PATTERNS,
    TAGS,
    parse_patterns,
    pattern_counts,
    tag_words,
)


@pytest.fixture(scope="module")
def doc_of():
    """Make a document of words with tags; "_" before a word joins it to the one before."""
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc

    vocab = spacy.blank("en").vocab

    def make(text):
        pairs = [pair.rsplit("/", 1) for pair in text.split()]
        joined = [word.startswith("_") and len(word) > 1 for word, _ in pairs]
        words = [word[join:] for (word, _), join in zip(pairs, joined, strict=True)]
        return Doc(
            vocab,
            words=words,
            spaces=[not join for join in [*joined[1:], False]],
            pos=[tag for _, tag in pairs],
        )

    return make


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The/DET Bank/PROPN _'s/PART rates/NOUN _./PUNCT",
         [("the", "DET"), ("bank", "PROPN"), ("rates", "NOUN")]),
        ("an/DET x/SYM _-/PUNCT _ray/NOUN", [("an", "DET"), ("x-ray", "NOUN")]),
        ("do/AUX _n't/PART go/VERB", [("don't", "PART"), ("go", "VERB")]),
        ("long/ADJ _-/PUNCT _term/NOUN", [("long", "ADJ"), ("term", "NOUN")]),
        ("l'/DET _eau/NOUN froide/ADJ", [("l", "DET"), ("eau", "NOUN"), ("froide", "ADJ")]),
        ("caf\u0065\u0301/NOUN", [("caf\u00e9", "NOUN")]),
        ("(/PUNCT _U.S./PROPN _)/PUNCT", [("u", "PROPN"), ("s", "PROPN")]),
        ("!!/PUNCT ?/PUNCT", []),
    ],
)  # fmt: skip
def test_words_take_the_tag_of_the_token_they_end_in(doc_of, text, expected):
    assert [pair for stretch in tag_words([doc_of(text)]) for pair in stretch] == expected


def test_what_cannot_be_aligned_ends_a_stretch(doc_of):
    stretches = tag_words([doc_of("red/ADJ \u6771\u4eac\u90fd/PROPN car/NOUN")])
    assert stretches == [[("red", "ADJ")], [("car", "NOUN")]]


def test_documents_are_kept_apart(doc_of):
    stretches = tag_words([doc_of("red/ADJ"), doc_of("car/NOUN")])
    counted = pattern_counts(["red car"], stretches, parse_patterns(["ADJ NOUN"]))
    assert counted == {"red car": (0, 0)}


def test_default_patterns_are_noun_phrases():
    patterns = parse_patterns(PATTERNS)
    read = "bank/NOUN of/ADP england/PROPN raises/VERB banque/NOUN centrale/ADJ high/ADJ rates/NOUN"
    stretch = [tuple(word.split("/")) for word in read.split()]
    terms = ["bank of england", "bank", "raises", "banque centrale", "high rates", "high",
             "england raises", "of england"]  # fmt: skip
    counted = pattern_counts(terms, [stretch], patterns)
    kept = {term for term, (matches, _) in counted.items() if matches}
    assert kept == {"bank of england", "bank", "banque centrale", "high rates"}
    assert all(occurs == 1 for _, occurs in counted.values())


def test_tags_are_those_of_spacy():
    symbols = pytest.importorskip("spacy.parts_of_speech")
    assert set(symbols.IDS) - {"", "CONJ", "EOL", "SPACE"} == TAGS
