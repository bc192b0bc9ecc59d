"""Tokenizers: how they read a corpus, and those that are learned, beside the library by hand."""

import re
import unicodedata

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from embedtopics import SentenceEncoder, plots
from embedtopics.pretraining import tokenizer_report, train_tokenizer
from tests.factories import each, refuses
from tests.pretraining.conftest import TEXTS


def test_a_report_by_hand(tiny_bert):
    # Known are some words and all letters but z, so that a word with it is unknown.
    texts = ["The cat, the dog!", "the CAT sat", "zebra", "oxen oxen", "the cat sat", "", None]
    report = tokenizer_report(str(tiny_bert), texts)
    of = report.words.set_index("word")
    assert (report.n_texts, report.n_words) == (5, 4 + 3 + 1 + 2 + 3)
    assert of.loc["the", ["n", "n_documents", "pieces", "cut"]].tolist() == [4, 3, 1, "the"]
    assert of.loc["oxen", ["n", "n_documents", "pieces", "cost"]].tolist() == [2, 1, 4, 6]
    assert of.loc["oxen", "cut"] == "o ##x ##e ##n"
    assert of.loc["zebra", ["pieces", "n_unknown"]].tolist() == [1, 1]
    assert report.n_pieces == 4 + 3 + 1 + 8 + 3 and report.n_unknown == 1
    assert report.fertility == pytest.approx(19 / 13)
    assert report.share_cut == pytest.approx(2 / 13)
    assert report.words.iloc[0]["word"] == "oxen"
    assert report.by_language["n_texts"].sum() == 5
    assert "1.46 pieces a word" in repr(report)


def test_every_family_reads_the_same_words(masked_folder):
    report = tokenizer_report(str(masked_folder), TEXTS)
    words = re.findall(r"\w+", " ".join(dict.fromkeys(TEXTS)).lower())
    assert report.n_words == 3 * len(words)
    assert dict(zip(report.words["word"], report.words["n"], strict=True)) == {
        word: 3 * words.count(word) for word in words
    }
    encoder = SentenceEncoder(masked_folder)
    tokenizer = Tokenizer.from_str(encoder.tokenizer_json)
    for word, cut in zip(report.words["word"], report.words["cut"], strict=True):
        # As within a text; the first word of one may be cut otherwise by bytes.
        known = {" ".join(tokenizer.encode(f"{before}{word}", add_special_tokens=False).tokens)
                 for before in ("", " ")}  # fmt: skip
        assert cut in known
    joined = ["".join(example) for example in report.examples]
    assert set(joined) == set(TEXTS)


def test_marks_belong_to_the_letters_before_them(masked_folder):
    words = ["हिन्दी", "में", "किताबें", "cafe\u0301", "l\u2019eau", "ไม่"]
    found = tokenizer_report(str(masked_folder), [" ".join(words), "snake_case"]).words["word"]
    composed = [unicodedata.normalize("NFC", word) for word in words]
    assert sorted(found) == sorted([*composed, "snake", "case"])


def test_the_figure_has_every_part(masked_folder):
    report = tokenizer_report(str(masked_folder), [*TEXTS, "<b>&amp; $x$</b> " * 30])
    figure = plots.tokens(report)
    shown = "".join(figure.data[0].text).replace("\u00a0", "")
    assert "<b>" not in shown and "&lt;" in shown and "$" not in shown
    assert len(figure.layout.shapes) == len(figure.data[0].text)
    assert max(shape.x1 for shape in figure.layout.shapes) <= 900 - 48


TRAINERS = {
    "wordpiece": (models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer),
    "bpe": (models.BPE(), trainers.BpeTrainer),
    "unigram": (models.Unigram(), trainers.UnigramTrainer),
}


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_learned_vocabulary_is_that_of_the_library(kind):
    made = train_tokenizer(TEXTS, kind, vocab_size=600)
    model, trainer = TRAINERS[kind]
    by_hand = Tokenizer(model)
    options = {"show_progress": False, "vocab_size": 600}
    if kind == "wordpiece":
        by_hand.normalizer = normalizers.BertNormalizer(lowercase=True)
        by_hand.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        # Ties between merges go by the number of a character, which is else drawn by the library.
        inside = [f"##{char}" for char in sorted(set("".join(TEXTS).lower()) - {" "})]
        specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *inside]
        options |= {"min_frequency": 2, "special_tokens": specials}
    elif kind == "bpe":
        by_hand.normalizer = normalizers.Lowercase()
        by_hand.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        options |= {"min_frequency": 2, "initial_alphabet": alphabet}
    else:
        parts = [normalizers.NFKC(), normalizers.Lowercase()]
        by_hand.normalizer = normalizers.Sequence(parts)
        by_hand.pre_tokenizer = pre_tokenizers.Metaspace()
        options |= {"unk_token": "<unk>", "special_tokens": ["<unk>"]}
    by_hand.train_from_iterator(sorted(set(TEXTS)), trainer(**options))
    specials = set(made.all_special_tokens) | {"[PAD]", "[UNK]", "<unk>"}
    assert set(made.get_vocab()) - specials >= set(by_hand.get_vocab()) - specials
    for text in TEXTS[:4]:
        ours = made.backend_tokenizer.encode(text, add_special_tokens=False).tokens
        assert ours == by_hand.encode(text).tokens


@pytest.mark.parametrize(
    ("name", "value"), each(kind=["words"], vocab_size=[5], corpus=[["", " "]])
)
def test_bad_parameters(name, value):
    with refuses(name):
        train_tokenizer(**{"corpus": TEXTS, name: value})


def test_what_has_no_tokenizer_or_no_words(tiny_bert):
    with refuses("encoder"):
        tokenizer_report("tfidf", TEXTS)
    with refuses("corpus"):
        tokenizer_report(str(tiny_bert), ["...", "!"])


def test_swapped_arguments_are_named(tiny_bert):
    with refuses("encoder") as caught:
        tokenizer_report(TEXTS, str(tiny_bert))
    assert "tokenizer_report(encoder, corpus)" in str(caught.value)
