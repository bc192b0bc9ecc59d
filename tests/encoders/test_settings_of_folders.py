"""What a folder says of its vectors: their measure, where they are cut, and positions of tokens."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

from embedtopics import SearchIndex
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders.sentence._checkpoint import _find_tokenizer, position_limit
from embedtopics.errors import ModelLoadError
from tests.factories import exact_encoder, refuses

TEXTS = ["the cat", "dog " * 30, "red and blue", "light or sound and the river"]

pytestmark = pytest.mark.filterwarnings("default")

MEASURES = ("dot", "euclidean", "manhattan")


def about(folder):
    return json.loads((folder / "config_sentence_transformers.json").read_text())


def configured(folder, **entries):
    """Change entries of the settings of a sentence-transformers folder."""
    path = folder / "config_sentence_transformers.json"
    before = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**before, **entries}))
    return folder


@pytest.mark.parametrize("measure", MEASURES)
def test_the_similarity_of_a_folder_is_that_of_sentence_transformers(
    make_sentence_folder, tmp_path, measure
):
    folder = configured(
        make_sentence_folder(normalize=False, legacy=False), similarity_fn_name=measure
    )
    encoder = exact_encoder(folder)
    oracle = SentenceTransformer(str(folder), device="cpu")

    first, second = encoder.encode(TEXTS[:3]), encoder.encode(TEXTS[1:4])

    assert encoder.similarity_fn_name == measure
    for ours, theirs in (
        (encoder.similarity(first, second), oracle.similarity(first, second)),
        (encoder.similarity_pairwise(first, second), oracle.similarity_pairwise(first, second)),
    ):
        np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), atol=1e-4)
    assert any(decision.name == "similarity" for decision in encoder.decisions)

    encoder.save(tmp_path / "again")
    assert about(tmp_path / "again")["similarity_fn_name"] == measure
    assert exact_encoder(tmp_path / "again").similarity_fn_name == measure
    assert as_encoder(oracle).similarity_fn_name == measure
    cached = CachedEncoder(encoder, folder=tmp_path / "cache")
    assert cached.similarity_fn_name == measure


@pytest.mark.parametrize("measure", MEASURES)
def test_an_index_refuses_what_cosine_would_order_otherwise(make_sentence_folder, measure):
    folder = configured(
        make_sentence_folder(normalize=False, legacy=False), similarity_fn_name=measure
    )
    options = {"languages": ["en"], "show_progress": False}
    with refuses("encoder"):
        SearchIndex.build(TEXTS[:4], encoder=exact_encoder(folder), **options)
    if measure != "manhattan":
        encoder = exact_encoder(folder, normalize=True)
        assert len(SearchIndex.build(TEXTS[:4], encoder=encoder, **options)) == 4


def test_an_unknown_similarity_or_cut_is_refused(make_sentence_folder):
    for entries in ({"similarity_fn_name": "jaccard"}, {"truncate_dim": 0}, {"truncate_dim": "x"}):
        folder = configured(make_sentence_folder(), **entries)
        with pytest.raises(ModelLoadError):
            exact_encoder(folder)
        configured(folder, similarity_fn_name=None, truncate_dim=None)


def test_the_cut_of_a_folder_is_read_changed_and_kept(make_sentence_folder, tmp_path):
    folder = configured(make_sentence_folder(normalize=False), truncate_dim=7)
    expected = exact_encoder(folder, truncate_dim=16).encode(TEXTS[:3])

    encoder = exact_encoder(folder)

    vectors = encoder.encode(TEXTS[:3])
    assert encoder.dimensions == 7 and vectors.shape == (3, 7)
    np.testing.assert_allclose(vectors, expected[:, :7], atol=1e-6)
    encoder.save(tmp_path / "again")
    assert about(tmp_path / "again")["truncate_dim"] == 7
    np.testing.assert_array_equal(exact_encoder(tmp_path / "again").encode(TEXTS[:3]), vectors)
    exact_encoder(folder, truncate_dim=4).save(tmp_path / "shorter")
    assert exact_encoder(tmp_path / "shorter").dimensions == 4


POSITIONS = [
    ({"model_type": "gpt2", "n_positions": 32}, 32),
    ({"model_type": "gpt2", "n_positions": 64, "n_ctx": 40}, 40),
    ({"model_type": "mpt", "max_seq_len": 100}, 100),
    ({"model_type": "bert", "max_position_embeddings": 512}, 512),
    ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
    ({"model_type": "mpnet", "max_position_embeddings": 514}, 512),
    ({"model_type": "t5", "n_positions": 512}, None),
    ({"model_type": "xlnet"}, None),
    ({"model_type": "deberta", "max_position_embeddings": -1}, None),
]


@pytest.mark.parametrize(("config", "limit"), POSITIONS, ids=lambda each: str(each)[:60])
def test_the_number_of_positions_has_the_names_of_its_families(config, limit):
    assert position_limit(config) == limit


@pytest.mark.parametrize("n_positions", [20, 33])
def test_a_gpt_reads_as_many_tokens_as_it_has_positions(tmp_path, n_positions):
    words = {"<unk>": 0, "<eos>": 1, **{f"w{i}": i + 2 for i in range(50)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=len(words), n_positions=n_positions, n_embd=8, n_layer=1,
                            n_head=2, bos_token_id=1, eos_token_id=1)  # fmt: skip
        GPT2Model(config).save_pretrained(tmp_path)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>"
    ).save_pretrained(tmp_path)
    text = " ".join(f"w{i}" for i in range(50))

    encoder = exact_encoder(tmp_path)

    report = encoder.encode_with_report([text])
    assert encoder.max_seq_length == n_positions
    assert report.n_seen.tolist() == [n_positions] and report.n_tokens.tolist() == [50]
    read = " ".join(f"w{i}" for i in range(n_positions))
    np.testing.assert_allclose(encoder.encode([text]), encoder.encode([read]), atol=1e-6)
    with refuses("max_seq_length"):
        exact_encoder(tmp_path, max_seq_length=n_positions + 1)


def test_merges_are_read_unless_tokenizer_json_holds_them(tmp_path):
    for name in ("vocab.json", "merges.txt", "special_tokens_map.json"):
        (tmp_path / name).write_text("{}")
    found = [path.name for path in _find_tokenizer(tmp_path)]
    assert found == ["vocab.json", "merges.txt", "special_tokens_map.json"]

    (tmp_path / "tokenizer.json").write_text("{}")
    found = [path.name for path in _find_tokenizer(tmp_path)]
    assert found == ["tokenizer.json", "special_tokens_map.json"]


def test_merges_alone_are_no_tokenizer(tmp_path):
    for name in ("merges.txt", "added_tokens.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(ModelLoadError, match=r"tokenizer\.json"):
        _find_tokenizer(tmp_path)
