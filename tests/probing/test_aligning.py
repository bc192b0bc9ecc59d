"""Every token in one word, every word with its tokens, whatever the text and the tokenizer."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedtopics.encoders.sentence._running import align
from embedtopics.probing._plan import (
    cut_into_windows,
    make_plan,
    read_texts,
    window_of_each_token,
    word_spans,
)

LEARNT_FROM = [
    "the cat sat on the mat and didn't see l'eau naïve café",
    "½ fine 東京 and 😀 or 👩‍👩‍👧, e.g. 3.14!",
] * 9
ODD = [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\U0001f44d\U0001f3fd",
    "e\u0301", "a\u030a\u0323", "\u200b", "️", "\u200d", "ﬁ", "½", "㍿", "ﷺ", "İ", "ß",
    "\u6771\u4eac\u30bf\u30ef\u30fc", "\u0e44\u0e17\u0e22",
    "\u0939\u093f\u0928\u094d\u0926\u0940", "\xa0", "\u3000", "\t", "\n\n", "  ", "don't",
    "l\u2019eau", "[SEP]", "</s>", "▁", "Ġ", "##s", "́", "\x00", "\ud83d", "\xad", "...",
    "x_1", "zzz",
]  # fmt: skip
PIECES = st.one_of(st.sampled_from(ODD), st.text(max_size=6), st.sampled_from(LEARNT_FROM))
TEXTS = st.lists(PIECES, max_size=8).map("".join)
SPLIT = st.lists(st.lists(PIECES, min_size=0, max_size=2).map("".join), max_size=6)
KINDS = ("word pieces", "bytes", "bytes with spaces", "unigram", "unigram in one piece")


@cache
def trained(kind):
    """A tokenizer of each kind, learnt from a few words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    quiet = {"show_progress": False, "vocab_size": 330}
    if kind == "word pieces":
        made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer()
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(special_tokens=["[UNK]", "[CLS]", "[SEP]"], **quiet)
    elif kind.startswith("bytes"):
        made = Tokenizer(models.BPE())
        trims = kind == "bytes"
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=trims)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            special_tokens=["[CLS]", "[SEP]"], initial_alphabet=alphabet, **quiet
        )
    else:
        made = Tokenizer(models.Unigram())
        made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
        made.pre_tokenizer = pre_tokenizers.Metaspace(split=kind == "unigram")
        trainer = trainers.UnigramTrainer(
            special_tokens=["<unk>", "[CLS]", "[SEP]"], unk_token="<unk>", **quiet
        )
    made.train_from_iterator(LEARNT_FROM, trainer)
    ends = [("[CLS]", made.token_to_id("[CLS]")), ("[SEP]", made.token_to_id("[SEP]"))]
    template = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    if kind.startswith("bytes"):
        by_bytes = processors.ByteLevel(trim_offsets=kind == "bytes")
        template = processors.Sequence([by_bytes, template])
    made.post_processor = template
    return made


def plan_of(texts, kind, **settings):
    others = {"words": True, "max_length": 10_000, "show_progress": False}
    return make_plan(read_texts(texts), trained(kind), **{**others, **settings})


def by_hand(spans, offsets, stretches):
    """The rule in plain loops over characters."""
    owner = {place: word for word, (a, b) in enumerate(spans) for place in range(a, b)}
    found = []
    for begin, end in offsets:
        held = [owner[place] for place in range(begin, end) if place in owner]
        found.append(min(set(held), key=lambda w: (-held.count(w), w)) if held else None)
    n = len(found)
    for token in [*reversed(range(n - 1))]:
        alone = found[token] is None
        if alone and stretches[token] is not None and stretches[token] == stretches[token + 1]:
            found[token] = found[token + 1]
    for token in range(1, n):
        alone = found[token] is None
        if alone and stretches[token] is not None and stretches[token] == stretches[token - 1]:
            found[token] = found[token - 1]
    return [-1 if word is None else word for word in found]


def check(texts, kind):
    """The laws, on one or several texts; returns the plan."""
    from embedtopics.encoders._base import readable

    reading, plan, tokenizer = read_texts(texts), plan_of(texts, kind), trained(kind)
    n_before = n_tokens = 0
    for text, spans in zip(reading.texts, reading.spans, strict=True):
        encoding = tokenizer.encode(readable(text))
        real = [k for k, special in enumerate(encoding.special_tokens_mask) if not special]
        offsets = [encoding.offsets[k] for k in real]
        stretches = [encoding.word_ids[k] for k in real]
        expected = by_hand(spans.tolist(), offsets, stretches)
        own = plan.n_pieces[n_before : n_before + len(spans)]
        assert own.tolist() == [expected.count(word) for word in range(len(spans))]
        for word, (begin, end) in zip(expected, offsets, strict=True):
            # What is in no word is white space; what is in one has a part of it, or is a sign.
            assert word >= 0 or not text[begin:end].strip()
            if word >= 0 and text[begin:end].strip():
                assert begin < spans[word][1] and spans[word][0] < end
        n_before += len(spans)
        n_tokens += len(real)
    assert plan.n_pieces.sum() + plan.n_between == n_tokens
    rows = np.concatenate([run.rows for run in plan.runs] or [np.zeros(0)])
    assert (np.bincount(rows.astype(int), minlength=n_before) == plan.n_pieces).all()
    return plan


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, split=SPLIT)
def test_no_token_is_lost_or_given_twice(kind, text, split):
    check([text], kind)
    check([split], kind)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_every_character_but_white_space_is_in_one_word(text):
    spans = word_spans(text)
    assert all(a < b for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    inside = {place for a, b in spans for place in range(a, b)}
    assert inside == {place for place, letter in enumerate(text) if not letter.isspace()}


@pytest.mark.parametrize(
    "words",
    [
        "Don't pay 3.50 | , OK | ?", "l' | eau d’ | Évian aujourd'hui",
        "well | - | known a | . | b", "Wait | ... what | ? | !",
        "👩‍👩‍👧 | 👍🏽 | 🇫🇷 | 🇩🇪 | ❤️", "cafe\u0301 हिन्दी",
        "a | \u200b | b \u00a0 c", "\n\t",
    ],
)  # fmt: skip
def test_words_are_cut_by_the_rule(words):
    text = words.replace(" | ", "")
    found = [text[a:b] for a, b in word_spans(text)]
    assert found == words.replace("|", " ").split()


def test_words_of_several_bytes_expanded_letters_and_nothing():
    # By hand: "日" has three bytes behind a sign for its space; zero-width spaces are dropped.
    assert plan_of(["a 日 "], "bytes").n_pieces.tolist() == [2, 4]
    assert plan_of(["a  \n\n b"], "bytes with spaces").n_between == 4
    assert plan_of([["a", "\u200b", "", "b"]], "word pieces").n_pieces.tolist() == [1, 0, 0, 1]
    # NFKC makes three characters of one half.
    assert plan_of([["x", "½"]], "unigram").n_pieces[1] >= 1


def test_a_token_across_words_goes_to_the_one_with_most_of_it_or_the_first():
    spans = np.array([[0, 1], [1, 4], [4, 6], [6, 8]])
    offsets = np.array([[0, 4], [4, 8], [8, 8]])
    assert align(spans, offsets, [0, 1, 1]).tolist() == [1, 2, 2]


@given(n_tokens=st.integers(1, 300), room=st.integers(1, 40))
def test_each_token_is_taken_where_it_has_most_context(n_tokens, room):
    starts = cut_into_windows(n_tokens, room)
    assert starts[0] == 0 and starts[-1] == max(0, n_tokens - room)
    shared = starts[:-1] + room - starts[1:]
    assert (shared >= room // 4).all()
    found = window_of_each_token(n_tokens, starts, room)
    for token in range(n_tokens):
        context = {
            number: min(token - start, min(start + room, n_tokens) - 1 - token)
            for number, start in enumerate(starts.tolist())
            if start <= token < start + room
        }
        assert found[token] == max(context, key=lambda number: (context[number], -number))


def test_long_texts_are_cut_and_every_token_kept_once():
    texts = ["the cat sat " * 30, "mat", "café " * 11]
    whole = plan_of(texts, "word pieces")
    cut = plan_of(texts, "word pieces", max_length=12)
    assert (whole.n_long, cut.n_long) == (0, 2)
    assert max(len(run.ids) // 4 for run in cut.runs) == 12
    np.testing.assert_array_equal(whole.n_pieces, cut.n_pieces)
    ids = {}
    for run in cut.runs:
        for place, row in zip(run.places, run.rows, strict=True):
            ids.setdefault(int(row), []).append(np.frombuffer(run.ids, np.int32)[place])
    for run in whole.runs:
        for row in np.unique(run.rows):
            expected = np.frombuffer(run.ids, np.int32)[run.places[run.rows == row]]
            assert ids[int(row)] == expected.tolist()
