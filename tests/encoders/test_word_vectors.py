import gzip

import numpy as np
import pytest
from gensim.models import FastText, KeyedVectors
from gensim.models.fasttext import load_facebook_vectors, save_facebook_model

from embedtopics.encoders import WordVectorEncoder
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.encoders.words._base import look_up
from embedtopics.encoders.words._vectors import read_word_vectors
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


def test_words_and_their_parts_have_gensims_vectors(files):
    theirs = load_facebook_vectors(str(files / "tiny.bin"))
    table = read_word_vectors(files / "tiny.bin")
    words = [*theirs.index_to_key, "catlike", "doggy", "unheard"]
    vectors, frequencies, is_known = look_up(table, words)
    np.testing.assert_allclose(vectors, [theirs[word] for word in words], atol=1e-6)
    assert is_known.tolist() == [True] * len(theirs.index_to_key) + [False] * 3
    counts = {word: sum(s.count(word) for s in SENTENCES) for word in words}
    total = sum(counts.values())
    np.testing.assert_allclose(frequencies, [counts[word] / total for word in words])


@pytest.mark.parametrize("name", ["tiny.vec", "zipped.vec.gz"])
def test_text_files_are_read_as_gensim_reads_them(files, name):
    theirs = KeyedVectors.load_word2vec_format(str(files / name))
    table = read_word_vectors(files / name)
    assert list(table.row_of) == theirs.index_to_key
    np.testing.assert_array_equal(table.rows, theirs.vectors)
    n_words = len(theirs.index_to_key)
    zipf = 1 / np.arange(1, n_words + 1)
    np.testing.assert_allclose(table.frequencies, zipf / zipf.sum())
    few = read_word_vectors(files / name, max_words=3)
    assert list(few.row_of) == theirs.index_to_key[:3]
    np.testing.assert_allclose(few.frequencies, table.frequencies[:3])


def write(path, *lines):
    path.write_bytes(b"\n".join(line.encode() for line in lines) + b"\n")
    return path


def test_averages_by_hand(tmp_path):
    path = write(tmp_path / "by_hand.vec", "3 2", "the 1 0", "cat 0 1", "Paris 3 4")
    # Zipf: 1, 1/2, 1/3 over 11/6; with a = 1, weights 1 / (1 + p).
    p = np.array([6, 3, 2]) / 11
    weights = 1 / (1 + p)
    sums = np.array([
        2 * weights[0] * np.array([1, 0]) + weights[1] * np.array([0, 1]),
        weights[2] * np.array([3, 4]) + weights[1] * np.array([0, 1]),
        weights[0] * np.array([1, 0]),
    ])  # fmt: skip
    texts = ["The the cat", "Paris CAT", "the unknown"]
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    encoder = WordVectorEncoder(path, smoothing=1.0)
    report = encoder.encode_with_report(texts)
    np.testing.assert_allclose(report.embeddings, expected, atol=1e-7)
    assert report.n_tokens.tolist() == [3, 2, 2] and report.n_unknown.tolist() == [0, 0, 1]

    # "the" three times, "The", "Paris", "CAT", "cat", "unknown" once, of 7 words: by case.
    shares = {"The": 1 / 7, "the": 2 / 7, "cat": 1 / 7, "Paris": 1 / 7, "CAT": 1 / 7}
    w = {word: 1 / (1 + share) for word, share in shares.items()}
    averages = np.array([
        [(w["The"] + w["the"]) / 3, w["cat"] / 3],
        [3 * w["Paris"] / 2, (4 * w["Paris"] + w["CAT"]) / 2],
        [w["the"] / 2, 0],
    ])  # fmt: skip
    direction = np.linalg.svd(averages)[2][0]
    rest = averages - np.outer(averages @ direction, direction)
    learning = WordVectorEncoder(path, frequencies="corpus", smoothing=1.0, remove_common=True)
    assert not learning.is_fitted
    found = learning.fit(texts).encode(texts)
    expected = rest / np.linalg.norm(rest, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    again = encoder_from_settings(learning.settings)
    assert learning.fit(texts[::-1]).fingerprint == again.fit(texts).fingerprint
    assert learning.fingerprint != encoder.fingerprint


def test_odd_texts_have_zeros(files):
    encoder = WordVectorEncoder(files / "tiny.bin")
    found = encoder.encode(["", "...", "\ud800", "\0", "the cat"])
    assert found.any(axis=1).tolist() == [False] * 4 + [True]
    assert encoder.encode([]).shape == (0, 6)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["word 1 2"], "line 1: expected the numbers of words and dimensions, found 'word 1 2'"),
        ([""], "line 1: expected the numbers"),
        (["0 2"], "line 1: expected numbers above 0, found 0 and 2"),
        (["2 2", "a 1 2", "b 1"], "line 3: expected a word and 2 numbers, .* found 1 numbers"),
        (["2 2", "a 1 2", "b 1 x"], "line 3: expected 2 numbers, found"),
        (["2 2", "a 1 nan", "b 1 2"], "line 2: expected finite numbers"),
        (["3 2", "a 1 2", "b 1 2"], "expected 3 words, as line 1 declares, found 2"),
        (["1 2", "a 1 2", "b 1 2"], "expected 1 words, as line 1 declares, found more"),
    ],
)
def test_damaged_text_is_refused_by_line(tmp_path, lines, message):
    path = write(tmp_path / "bad.vec", *lines)
    with pytest.raises(ModelLoadError, match=rf"bad\.vec: {message}.*; download or write"):
        WordVectorEncoder(path)


def test_damaged_binaries_are_refused(files, tmp_path):
    whole = (files / "tiny.bin").read_bytes()
    path = tmp_path / "bad.bin"
    for length in [*range(0, 400, 7), len(whole) // 2, len(whole) // 3]:
        path.write_bytes(whole[:length])
        with pytest.raises(ModelLoadError, match=r"bad\.bin"):
            read_word_vectors(path)
    path.write_bytes(b"not a model " * 100)
    with pytest.raises(ModelLoadError, match="another kind of file"):
        read_word_vectors(path)
    wide = whole[:8] + (7).to_bytes(4, "little") + whole[12:]
    path.write_bytes(wide)
    with pytest.raises(ModelLoadError, match="vectors of 7 numbers, as the header declares, found"):
        read_word_vectors(path)
    many = whole[:64] + (2**31 - 1).to_bytes(4, "little") + whole[68:]
    path.write_bytes(many)
    with pytest.raises(ModelLoadError, match=r"bad\.bin"):
        read_word_vectors(path)


def test_missing_and_broken_files_and_bad_parameters(files, tmp_path):
    with pytest.raises(ModelLoadError, match=r"at .*nowhere\.vec"):
        WordVectorEncoder(tmp_path / "nowhere.vec")
    broken = tmp_path / "broken.vec.gz"
    broken.write_bytes((files / "zipped.vec.gz").read_bytes()[:-20])
    with pytest.raises(ModelLoadError, match=r"broken\.vec\.gz"):
        WordVectorEncoder(broken)
    broken.write_bytes(b"no gzip")
    with pytest.raises(ModelLoadError, match=r"broken\.vec\.gz cannot be read"):
        WordVectorEncoder(broken)
