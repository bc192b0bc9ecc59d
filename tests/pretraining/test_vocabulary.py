"""Words that are added: how they are read, what they start with, and that all else stays."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from embedtopics.errors import EmbedTopicsError, ModelLoadError
from embedtopics.pretraining import extend_vocabulary
from embedtopics.pretraining._vocabulary import _masked_model
from tests.factories import contents, exact_encoder, refuses
from tests.pretraining.conftest import TEXTS

WORDS = ["graphene", "rebuilds", "graphene oxide", "river"]


@pytest.fixture(scope="module")
def extended(masked_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("extended") / "out"
    return extend_vocabulary(str(masked_folder), WORDS, TEXTS, out=out)


def pieces(folder, text):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokenizer.convert_ids_to_tokens(ids)


def new_of(found):
    return [piece for piece in found if piece in WORDS]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a sheet of graphene", ["graphene"]),
        ("graphene is thick", ["graphene"]),
        ("Graphene, (graphene): graphene!", ["graphene"] * 3),
        ("graphene oxide and graphene", ["graphene oxide", "graphene"]),
        ("graphenes, nanographene and graphene_x", []),
        ("it rebuilds.", ["rebuilds"]),
    ],
)
def test_new_words_are_one_piece_where_they_stand_alone(extended, text, expected):
    assert new_of(pieces(extended.encoder.name, text)) == expected


def test_what_is_around_keeps_its_pieces(extended, masked_folder):
    folder = extended.encoder.name
    for text in ["the old town, and walls", "graphenes conduct", "é ñ 日本 😀", *TEXTS[2:4]]:
        if not any(word in text for word in WORDS[:2]) or text == "graphenes conduct":
            assert new_of(pieces(folder, text)) in ([], ["river"])
    before, after = pieces(masked_folder, "a sheet of heat"), pieces(folder, "a sheet of heat")
    assert before == after
    for text in ("the graphene is old", "old graphene, old"):
        left, right = text.split("graphene")
        split = [*pieces(masked_folder, left.rstrip()), "graphene"]
        assert pieces(folder, text)[: len(split)] == split
        # Nothing but the space marks of a family stands between the word and what follows.
        rest = [piece.strip("\u2581") for piece in pieces(folder, text)[len(split) :]]
        own = [piece.strip("\u2581") for piece in pieces(masked_folder, right)]
        assert [piece for piece in rest if piece] == [piece for piece in own if piece]


def test_old_texts_keep_their_vectors(extended, masked_folder):
    old = ["the old town and its walls", "thick walls hold heat", ""]
    before = exact_encoder(masked_folder, backend="torch").encode(old)
    after = exact_encoder(extended.encoder.name, backend="torch").encode(old)
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_vectors_and_head_start_as_the_mean_of_the_pieces(extended, masked_folder):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    before = AutoModelForMaskedLM.from_pretrained(masked_folder)
    after = AutoModelForMaskedLM.from_pretrained(extended.encoder.name)
    tokenizer = AutoTokenizer.from_pretrained(masked_folder)
    table = after.get_input_embeddings().weight
    assert table.shape[0] == len(AutoTokenizer.from_pretrained(extended.encoder.name))
    assert after.get_output_embeddings().weight is table  # still tied
    new = [word for word in WORDS if word in set(extended.words["word"])]
    for place, word in enumerate(new, len(tokenizer)):
        ids = tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
        expected = before.get_input_embeddings().weight[ids].mean(dim=0)
        torch.testing.assert_close(table[place], expected)
        bias = before.get_output_embeddings().bias[ids].mean()
        torch.testing.assert_close(after.get_output_embeddings().bias[place], bias)
    ids = torch.tensor([[5, 6, 7]])
    torch.testing.assert_close(
        after(input_ids=ids).logits[..., : len(tokenizer)], before(input_ids=ids).logits
    )


def test_the_table_and_known_words(extended, masked_folder):
    table = extended.words
    known = [word for word in WORDS if len(pieces(masked_folder, f" {word}")) == 1]
    assert table["word"].tolist() == [word for word in WORDS if word not in known]
    assert all(cut.count(" ") >= 1 for cut in table["pieces"])
    assert table["neighbors_before"].str.len().gt(0).all()
    assert [decision.value for decision in extended.decisions] == ([len(known)] if known else [])


def test_new_rows_alone_are_fitted_so_that_texts_keep_their_vectors(tiny_bert, tmp_path):
    texts = [f"{animal} {verb} {place} {i}" for animal in ("oxen", "the dog") for i in range(15)
             for verb, place in (("ran in", "the park"), ("sat on", "the mat"))]  # fmt: skip
    before = exact_encoder(tiny_bert, backend="torch")
    extended = extend_vocabulary(before, corpus=texts, n_words=1, out=tmp_path / "a")
    assert extended.words["word"].tolist() == ["oxen"]
    cut = extended.words["pieces"].str.count(" ")[0] * 30 / sum(len(t.split()) for t in texts)
    np.testing.assert_allclose(np.subtract(*extended.fertility), cut)
    after = exact_encoder(extended.encoder.name, backend="torch")
    units = [one.encode(texts) for one in (before, after)]
    units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in units]
    kept = (units[0] * units[1]).sum(axis=1)
    np.testing.assert_allclose(kept[30:], 1, atol=1e-6)  # texts without the word
    plain, fitted = extended.agreement
    assert plain < fitted and abs(kept[:30].mean() - fitted) < 0.05
    assert f"keep a cosine of {fitted:.3f}" in repr(extended)
    alone = extend_vocabulary(before, ["oxen"], out=tmp_path / "b")
    assert alone.agreement is None and not alone.decisions


@pytest.mark.parametrize(
    ("parameters", "name", "row"),
    [
        ({"words": []}, "words", None),
        ({"words": ["graphene", " "]}, "words", 1),
        ({"words": ["graphene", "sheet of", "graphene"]}, "words", 2),
        ({"words": None}, "words", None),
        ({"words": None, "corpus": ["the cat", "the dog"]}, "corpus", None),
    ],
)
def test_bad_parameters_write_nothing(tiny_bert, tmp_path, parameters, name, row):
    given = {"encoder": str(tiny_bert), "words": ["graphene"], **parameters}
    with refuses(name, row=row):
        extend_vocabulary(**given, out=tmp_path / "a")
    assert not contents(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(tiny_bert, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_bert, tmp_path / "other")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"vocab_size": ', '"vocab_size": 1'))
    with pytest.raises(EmbedTopicsError):
        extend_vocabulary(str(folder), ["graphene"], out=tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("architectures", [5, "BertForMaskedLM", [None], {"BertForMaskedLM": 1}])
def test_architectures_that_are_no_list_of_names_are_refused(tmp_path, architectures):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": architectures}), "utf-8")
    with pytest.raises(ModelLoadError, match=r"config\.json: architectures"):
        _masked_model(SimpleNamespace(folder=tmp_path))
