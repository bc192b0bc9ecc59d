import json

import numpy as np
import pandas as pd
import pytest

from embedtopics import SentenceEncoder, probing
from embedtopics.errors import ModelLoadError
from embedtopics.probing._plan import word_spans
from embedtopics.probing.results import ProbeTask
from tests.factories import each, refuses

TEXTS = [
    "the cat sat on the mat",
    "",
    "unknowable dogs ran: red, blue... and 東京 light",
    "a",
    "naïve cats 😀 sat in the rivers",
]


def of_transformers(folder, text):
    """Ids, offsets and states of all layers of one text, from a plain call of transformers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(
        text, return_tensors="pt", return_offsets_mapping=True, return_special_tokens_mask=True
    )
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        output = model(
            input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"],
            output_hidden_states=True,
        )  # fmt: skip
    real = tokens["special_tokens_mask"][0].numpy() == 0
    states = np.array([layer[0].numpy() for layer in output.hidden_states])
    spans = tokens["offset_mapping"][0].tolist()
    stretches = tokens.word_ids()
    for place in reversed(range(len(spans) - 1)):
        if spans[place][0] == spans[place][1] and stretches[place] == stretches[place + 1]:
            spans[place] = spans[place + 1]
    return np.array(spans)[real], states[:, real]


def by_hand(text, offsets, states):
    """Mean vectors of words whose tokens lie in them, in the plainest way."""
    made = []
    for begin, end in word_spans(text):
        own = [k for k, (a, b) in enumerate(offsets) if begin <= a and b <= end and a < b]
        zeros = np.zeros((len(states), states.shape[2]))
        made.append(states[:, own].mean(axis=1) if own else zeros)
    return made


def check_against_transformers(folder, texts, **settings):
    states = probing.hidden_states(folder, texts, dtype="float32", **settings)
    found = np.array(states.vectors).swapaxes(0, 1)
    expected = []
    for text in texts:
        offsets, vectors = of_transformers(folder, text)
        if settings.get("words", True):
            expected += by_hand(text, offsets, vectors)
        else:
            expected += list(vectors.swapaxes(0, 1))
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5, rtol=1e-5)
    return states


def test_all_layers_of_every_family_are_those_of_transformers(checkpoint):
    states = check_against_transformers(checkpoint, TEXTS)
    assert states.layers == (0, 1, 2, 3) and states.width == 16


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_a_word_has_the_mean_of_its_tokens(name, request):
    states = check_against_transformers(request.getfixturevalue(name), [t[:28] for t in TEXTS])
    assert states.n_pieces.max() > 1


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_tokens_can_be_the_units(name, request):
    texts = [t[:28] for t in TEXTS]
    states = check_against_transformers(request.getfixturevalue(name), texts, words=False)
    assert states.unit == "token" and (states.n_pieces == 1).all()
    for word, text, (begin, end) in zip(states.words, states.of_text, states.spans, strict=True):
        assert word == texts[text][begin:end]


def test_float16_is_the_float32_rounded_once(tiny_bert):
    exact = probing.hidden_states(tiny_bert, TEXTS, dtype="float32")
    rounded = probing.hidden_states(tiny_bert, TEXTS)
    for one, other in zip(exact.vectors, rounded.vectors, strict=True):
        assert other.dtype == np.float16
        np.testing.assert_array_equal(np.asarray(one).astype(np.float16), other)


def test_long_texts_are_read_in_windows(tiny_bert):
    # 50 words of one token: windows of 30 tokens that begin at 0 and 20, and meet in the middle.
    words = "the cat sat on the mat and red dog ran".split() * 5
    states = probing.hidden_states(tiny_bert, [" ".join(words)], dtype="float32")
    first, second = (of_transformers(tiny_bert, " ".join(w))[1] for w in (words[:30], words[20:]))
    expected = np.concatenate([first[:, :25], second[:, 5:]], axis=1)
    np.testing.assert_allclose(np.array(states.vectors), expected, atol=1e-5)
    assert [(d.name, d.value) for d in states.decisions] == [("long_texts", 1)]


def test_a_word_across_windows_is_pooled_from_both(tiny_bert):
    # "b" and 49 pieces "##b": by hand from the tokens, which the test above holds to an oracle.
    word = "b" * 50
    tokens = probing.hidden_states(tiny_bert, [word], words=False, dtype="float32")
    states = probing.hidden_states(tiny_bert, [word], dtype="float32")
    assert (len(tokens), states.n_pieces.tolist()) == (50, [50])
    expected = np.array(tokens.vectors).mean(axis=1)
    np.testing.assert_allclose(np.array(states.vectors)[:, 0], expected, atol=1e-5)


def test_words_sentences_and_positions(tiny_bert):
    texts = ["The cat sat. A dog!", "", "one"]
    raw = probing.hidden_states(tiny_bert, texts)
    assert raw.words == ("The", "cat", "sat", ".", "A", "dog", "!", "one")
    assert raw.of_text.tolist() == [0] * 7 + [2]
    assert raw.position.tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    assert raw.sentences.tolist() == [0, 0, 0, 0, 1, 1, 1, 3]
    assert raw.encoder == str(tiny_bert)
    words = [text.split() for text in texts]
    split = probing.hidden_states(tiny_bert, words)
    assert split.texts == tuple(texts)
    assert split.words == ("The", "cat", "sat.", "A", "dog!", "one")
    assert split.sentences.tolist() == [0] * 5 + [2]
    for given in (tuple(map(tuple, words)), tuple(texts)):
        task = ProbeTask("any", "text", given, labels=(("x",),) * 3)
        found = probing.hidden_states(tiny_bert, task)
        assert found.sentences.tolist() == found.of_text.tolist()


def test_missing_words_keep_their_rows(tiny_bert):
    states = probing.hidden_states(tiny_bert, [["the", "\u200b", "", "cat"], ["\ufe0f"]])
    assert states.words == ("the", "\u200b", "", "cat", "\ufe0f")
    assert states.missing.tolist() == [False, True, True, False, True]
    assert not np.array(states.vectors)[:, states.missing].any()
    assert [(d.name, d.value) for d in states.decisions] == [("missing_words", 3)]


def test_layers_can_be_chosen(tiny_bert):
    everything = probing.hidden_states(tiny_bert, TEXTS)
    for layers, expected in [(-1, (2,)), ([-1, 0, 2], (0, 2)), ("last 2", (1, 2)), (1, (1,))]:
        states = probing.hidden_states(tiny_bert, TEXTS, layers=layers)
        assert states.layers == expected
        for layer, vectors in zip(expected, states.vectors, strict=True):
            np.testing.assert_array_equal(vectors, everything.layer(layer))


def test_encoders_are_accepted_as_objects(tiny_bert):
    from embedtopics.encoders import CachedEncoder

    named = probing.hidden_states(tiny_bert, TEXTS)
    for encoder in (SentenceEncoder(tiny_bert), CachedEncoder(SentenceEncoder(tiny_bert))):
        given = probing.hidden_states(encoder, TEXTS)
        assert given.fingerprint == named.fingerprint
        np.testing.assert_array_equal(given.vectors, named.vectors)
    prompted = probing.hidden_states(SentenceEncoder(tiny_bert, prompt="the "), TEXTS)
    np.testing.assert_array_equal(prompted.vectors, named.vectors)
    assert [d.name for d in prompted.decisions] == ["prompt"]
    shorter = probing.hidden_states(SentenceEncoder(tiny_bert, max_seq_length=8), TEXTS)
    assert shorter.fingerprint != named.fingerprint


@pytest.mark.parametrize(
    ("texts", "row"),
    [([], None), ("the cat", None), (["a", None], 1), (["a", ["b"]], 1), ([["a"], "b"], 1),
     ([["a"], ["b", 3]], 1), ({"a": "the cat"}, None), (pd.DataFrame({"text": ["a"]}), None)],
)  # fmt: skip
def test_bad_texts_are_refused(texts, row, tiny_bert):
    with refuses("texts", row=row):
        probing.hidden_states(tiny_bert, texts)


@pytest.mark.parametrize(
    ("parameter", "value"),
    each(layers=[3, -4, [], "first", 1.5], dtype=["int8"], encoder=["tfidf"]),
)
def test_bad_settings_are_refused(parameter, value, tiny_bert):
    with refuses(parameter):
        probing.hidden_states(**{"encoder": tiny_bert, "texts": ["the cat"], parameter: value})
    with refuses("random_state"):
        probing.hidden_states(tiny_bert, ["the cat"], random_weights=True, random_state=-1)


def test_decoders_are_read_and_encoder_decoders_are_refused(tiny_bert, tmp_path):
    import shutil

    from transformers import BartConfig, BertConfig, BertModel

    folder = shutil.copytree(tiny_bert, tmp_path / "forwards")
    config = BertConfig.from_pretrained(tiny_bert, is_decoder=True)
    BertModel(config).save_pretrained(folder)
    texts = ["the cat sat", "the cat sat on the mat"]
    states = probing.hidden_states(folder, texts, words=False, dtype="float32")
    assert [d.name for d in states.decisions] == ["causal"]
    short, long = (of_transformers(folder, text)[1] for text in texts)
    for layer in states.layers:
        made = np.concatenate([short[layer], long[layer]])
        np.testing.assert_allclose(states.layer(layer), made, atol=1e-5)
    n = short.shape[1]
    np.testing.assert_allclose(short, long[:, :n], atol=1e-5)  # what comes after is not known
    (folder / "config.json").write_text(json.dumps(BartConfig().to_dict()))
    with pytest.raises(ModelLoadError, match="got an encoder-decoder of type 'bart'"):
        probing.hidden_states(folder, ["the cat"])
