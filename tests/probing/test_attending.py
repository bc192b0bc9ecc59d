import numpy as np

from embedtopics import probing
from tests.factories import refuses


def test_attention_is_that_of_transformers(checkpoint):
    import torch
    from transformers import AutoModel, AutoTokenizer

    text = "the cat sat on the mat"
    found = probing.attention(text, checkpoint)
    ids = AutoTokenizer.from_pretrained(checkpoint)(text, return_tensors="pt")["input_ids"]
    model = AutoModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = model(ids, output_attentions=True).attentions
    assert found.tokens == ("<cls>", *text.split(), "<sep>")
    assert found.layers == (1, 2, 3)
    assert found.weights.dtype == np.float32
    np.testing.assert_allclose(found.weights, np.array([x[0].numpy() for x in expected]), atol=1e-5)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    again = probing.attention(text.split(), checkpoint)
    np.testing.assert_array_equal(again.weights, found.weights)


def test_tokens_read_as_in_the_text(tiny_bert, tiny_roberta):
    assert probing.attention("catwalk", tiny_bert).tokens == (
        "[CLS]", "cat", "w", "a", "l", "k", "[SEP]",
    )  # fmt: skip
    assert probing.attention("the é", tiny_roberta).tokens == ("<s>", "the", "Ġ", "é", "é", "</s>")


def test_bad_texts_are_refused(tiny_bert):
    with refuses("text"):
        probing.attention(" ", tiny_bert)
    with refuses("text"):
        probing.attention("cat " * 40, tiny_bert)
