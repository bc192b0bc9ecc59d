import numpy as np
import pytest

from embedtopics import probing
from embedtopics.probing.reading import word_spans

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


def by_hand(text, offsets, states, pool):
    """Vectors of words whose tokens lie in them, in the plainest way."""
    made = []
    for begin, end in word_spans(text):
        own = [k for k, (a, b) in enumerate(offsets) if begin <= a and b <= end and a < b]
        zeros = np.zeros((len(states), states.shape[2]))
        made.append(pool(states[:, own]) if own else zeros)
    return made


POOLS = {
    "mean": lambda x: x.mean(axis=1), "sum": lambda x: x.sum(axis=1),
    "max": lambda x: x.max(axis=1), "first": lambda x: x[:, 0], "last": lambda x: x[:, -1],
}  # fmt: skip


def check_against_transformers(folder, texts, **settings):
    states = probing.hidden_states(texts, folder, dtype="float32", **settings)
    found = np.array(states.vectors).swapaxes(0, 1)
    expected = []
    for text in texts:
        offsets, vectors = of_transformers(folder, text)
        if settings.get("words", True):
            expected += by_hand(text, offsets, vectors, POOLS[settings.get("pooling", "mean")])
        else:
            expected += list(vectors.swapaxes(0, 1))
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5, rtol=1e-5)
    return states


def test_all_layers_of_every_family_are_those_of_transformers(checkpoint):
    states = check_against_transformers(checkpoint, TEXTS)
    assert states.layers == (0, 1, 2, 3)
    assert states.width == 16


@pytest.mark.parametrize("pooling", POOLS)
@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_tokens_are_pooled_to_words(name, pooling, request):
    folder = request.getfixturevalue(name)
    states = check_against_transformers(folder, [t[:28] for t in TEXTS], pooling=pooling)
    assert states.n_pieces.max() > 1
    assert states.pooling == pooling


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_tokens_can_be_the_units(name, request):
    folder = request.getfixturevalue(name)
    texts = [t[:28] for t in TEXTS]
    states = check_against_transformers(folder, texts, words=False)
    assert states.unit == "token"
    assert (states.n_pieces == 1).all()
    for word, text, (begin, end) in zip(states.words, states.of_text, states.spans, strict=True):
        assert word == texts[text][begin:end]


def test_float16_is_the_float32_rounded_once(tiny_bert):
    exact = probing.hidden_states(TEXTS, tiny_bert, dtype="float32")
    rounded = probing.hidden_states(TEXTS, tiny_bert)
    for one, other in zip(exact.vectors, rounded.vectors, strict=True):
        assert other.dtype == np.float16
        np.testing.assert_array_equal(np.asarray(one).astype(np.float16), other)


def test_a_text_does_not_depend_on_the_others(checkpoint):
    together = probing.hidden_states(TEXTS, checkpoint, dtype="float32", tokens_per_batch=1000)
    for row, text in enumerate(TEXTS):
        alone = probing.hidden_states([text], checkpoint, dtype="float32")
        for one, other in zip(alone.vectors, together.vectors, strict=True):
            np.testing.assert_allclose(one, other[together.rows_of(row)], atol=1e-5)
