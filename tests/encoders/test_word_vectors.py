import gzip

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import load_facebook_vectors, save_facebook_model

from embedtopics.encoders import WordVectorEncoder
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.errors import ModelLoadError

SENTENCES = [
    "the cat sat on the mat".split(), "the dog sat on the log".split(),
    "Cats and dogs and cats".split(), "été à la plage".split(),
] * 5  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    model = FastText(
        SENTENCES, vector_size=6, min_count=1, bucket=50, min_n=3, max_n=4, epochs=2, workers=1
    )
    save_facebook_model(model, str(folder / "tiny.bin"))
    model.wv.save_word2vec_format(str(folder / "tiny.vec"), binary=False)
    with gzip.open(folder / "zipped.vec.gz", "wb") as file:
        file.write((folder / "tiny.vec").read_bytes())
    return folder


@pytest.mark.parametrize("name", ["tiny.bin", "tiny.vec", "zipped.vec.gz"])
def test_words_have_the_vectors_of_the_file(files, name):
    theirs = load_facebook_vectors(str(files / "tiny.bin"))
    encoder = WordVectorEncoder(files / name)
    words = list(theirs.index_to_key)
    new = ["catlike", "doggy", "unheard"]
    vectors = encoder.encode([*words, *new])
    expected = np.array([theirs[word] for word in [*words, *new]])
    if name != "tiny.bin":
        expected[-len(new) :] = 0.0  # these files have no parts of words
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors * lengths, expected, atol=1e-6)
    assert encoder.count_tokens([*words, *new]).n_unknown.sum() == len(new)
    counts = np.array([sum(s.count(word) for s in SENTENCES) for word in words])
    weights = counts if name == "tiny.bin" else 1 / np.arange(1, len(words) + 1)
    np.testing.assert_allclose(encoder._frequencies, weights / weights.sum())


def write(path, *lines):
    path.write_bytes(b"\n".join(line.encode() for line in lines) + b"\n")
    return path


def test_averages_by_hand(tmp_path):
    path = write(tmp_path / "by_hand.vec", "3 2", "the 1 0", "cat 0 1", "Paris 3 4")
    # Zipf: 1, 1/2, 1/3 over 11/6; weights 1 / (1 + 1,000 p).
    weights = 1 / (1 + 1_000 * np.array([6, 3, 2]) / 11)
    sums = np.array([
        2 * weights[0] * np.array([1, 0]) + weights[1] * np.array([0, 1]),
        weights[2] * np.array([3, 4]) + weights[1] * np.array([0, 1]),
        weights[0] * np.array([1, 0]),
    ])  # fmt: skip
    texts = ["The the cat", "Paris CAT", "the unknown"]
    encoder = WordVectorEncoder(path)
    report = encoder.encode_with_report(texts)
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(report.embeddings, expected, atol=1e-7)
    assert report.n_tokens.tolist() == [3, 2, 2] and report.n_unknown.tolist() == [0, 0, 1]
    assert encoder_from_settings(encoder.settings).fingerprint == encoder.fingerprint


def test_odd_texts_have_zeros(files):
    encoder = WordVectorEncoder(files / "tiny.bin")
    vectors = encoder.encode(["", "...", "\ud800", "\0", "the cat"])
    assert vectors.any(axis=1).tolist() == [False] * 4 + [True]
    assert encoder.encode([]).shape == (0, 6)


@pytest.mark.parametrize(
    "lines",
    [
        ["word 1 2"], [""], ["2 3", "a 1 2 3", "b 1 2"], ["2 2", "a 1 2", "b 1 x"],
        ["2 2", "a 1 nan", "b 1 2"], ["3 2", "a 1 2", "b 1 2"],
    ],
)  # fmt: skip
def test_damaged_text_is_refused(tmp_path, lines):
    path = write(tmp_path / "bad.vec", *lines)
    with pytest.raises(ModelLoadError, match=r"bad\.vec cannot be read .*; download or write"):
        WordVectorEncoder(path)


def test_damaged_binaries_are_refused(files, tmp_path):
    whole = (files / "tiny.bin").read_bytes()
    cut = [whole[:length] for length in [*range(0, 400, 7), len(whole) // 2, len(whole) // 3]]
    wide = whole[:8] + (7).to_bytes(4, "little") + whole[12:]
    many = whole[:64] + (2**31 - 1).to_bytes(4, "little") + whole[68:]
    path = tmp_path / "bad.bin"
    for content in [*cut, b"not a model " * 100, wide, many]:
        path.write_bytes(content)
        with pytest.raises(ModelLoadError, match=r"bad\.bin"):
            WordVectorEncoder(path)


def test_missing_and_broken_files_are_refused(files, tmp_path):
    with pytest.raises(ModelLoadError, match=r"at .*nowhere\.vec"):
        WordVectorEncoder(tmp_path / "nowhere.vec")
    broken = tmp_path / "broken.vec.gz"
    for content in ((files / "zipped.vec.gz").read_bytes()[:-20], b"no gzip"):
        broken.write_bytes(content)
        with pytest.raises(ModelLoadError, match=r"broken\.vec\.gz cannot be read"):
            WordVectorEncoder(broken)
