import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.encoders import CachedEncoder
from embedtopics.encoders import _cache as cached
from embedtopics.encoders.results import Encoding
from tests.factories import FULL_DISK, PATIENCE, raising, refuses


class Counting:
    """Makes vectors of hashes, and remembers what it was asked for."""

    name = "counting"
    dimensions = 6
    languages = ("en",)

    def __init__(self, fingerprint="f" * 64, scale=1.0):
        self.fingerprint = fingerprint
        self.scale = scale
        self.asked = []

    def encode_with_report(self, texts, *, show_progress=None):
        self.asked.append(list(texts))
        rows = [np.frombuffer(hashlib.blake2b(t.encode()).digest()[:24], "<u4") for t in texts]
        vectors = np.array(rows, dtype=np.float64).reshape(len(texts), 6) / 2**32 * self.scale
        lengths = np.array([len(t) for t in texts], dtype=np.int64)
        return Encoding(vectors.astype(np.float32), lengths, lengths // 2, lengths // 3)

    def encode(self, texts):
        return self.encode_with_report(texts).embeddings

    @property
    def n_texts(self):
        return sum(map(len, self.asked))


def assert_same(one, other):
    for name in ("embeddings", "n_tokens", "n_seen", "n_unknown"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def n_encoded(texts, folder):
    """Tell how many texts were not in the cache; what comes out is what the encoder gives."""
    inner = Counting()
    found = CachedEncoder(inner, folder=folder).encode_with_report(texts)
    assert_same(found, Counting().encode_with_report(texts))
    return inner.n_texts


def test_only_what_is_new_is_encoded(tmp_path):
    texts = [f"text {i}" for i in range(50)]
    assert [n_encoded(own, tmp_path) for own in (texts[:40], texts, texts)] == [40, 10, 0]
    assert CachedEncoder(Counting(), folder=tmp_path).encode([]).shape == (0, 6)
    with refuses("texts", row=1):
        CachedEncoder(Counting(), folder=tmp_path).encode(["a", None])


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(st.lists(st.text(max_size=3), max_size=12), min_size=1, max_size=4),
    texts_a_shard=st.integers(1, 5),
)
def test_any_calls_in_any_order_give_what_the_encoder_gives(calls, texts_a_shard, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    inner = Counting()
    encoder = CachedEncoder(inner, folder=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached, "TEXTS_A_WRITE", texts_a_shard)
        for texts in calls:
            texts = [t.encode("utf-8", "ignore").decode() for t in texts]
            if texts:
                expected = Counting().encode_with_report(texts)
                assert_same(encoder.encode_with_report(texts), expected)
    asked = [text for texts in inner.asked for text in texts]
    assert len(asked) == len(set(asked))  # no text was encoded twice


def test_encoders_do_not_see_one_anothers_vectors(tmp_path):
    CachedEncoder(Counting("a" * 64), folder=tmp_path).encode(["text"])
    other = Counting("b" * 64, scale=2.0)
    found = CachedEncoder(other, folder=tmp_path).encode(["text"])
    assert other.n_texts == 1
    np.testing.assert_array_equal(found, Counting(scale=2.0).encode(["text"]))


def stores_of(folder):
    return sorted(Path(folder).glob("**/*.sqlite"))


@pytest.mark.parametrize("at", [3, -5, "cut", "no file of SQLite"])
def test_a_damaged_file_is_made_again(tmp_path, at):
    texts = [f"text {i}" for i in range(8)]
    CachedEncoder(Counting(), folder=tmp_path).encode(texts)
    (store,) = stores_of(tmp_path)
    data = bytearray(store.read_bytes())
    if isinstance(at, int):
        data[at] ^= 0xFF
    contents = {"cut": data[:-40], "no file of SQLite": b"no file of SQLite" * 99}
    store.write_bytes(contents.get(at, data))
    assert n_encoded(texts, tmp_path) > 0
    n_encoded(texts, tmp_path)  # the vectors that were read before the damage
    assert n_encoded(texts, tmp_path) == 0


def test_a_damaged_vector_is_made_again_and_the_others_stay(tmp_path, caplog):
    texts = [f"text {i}" for i in range(8)]
    CachedEncoder(Counting(), folder=tmp_path).encode(texts)
    (store,) = stores_of(tmp_path)
    with sqlite3.connect(store) as connection:
        [key, content] = connection.execute("SELECT key, content FROM vectors").fetchone()
        changed = content[:-1] + bytes([content[-1] ^ 1])
        connection.execute("UPDATE vectors SET content = ? WHERE key = ?", (changed, key))
    assert n_encoded(texts, tmp_path) == 1 and str(store) in caplog.text
    assert n_encoded(texts, tmp_path) == 0


def test_a_full_disk_and_a_folder_that_cannot_be_made_cost_one_warning(
    tmp_path, monkeypatch, caplog
):
    (tmp_path / "file").write_text("in the way")
    assert n_encoded(["a"], tmp_path / "file") == 1 and "cannot be stored" in caplog.text
    monkeypatch.setattr(cached, "TEXTS_A_WRITE", 2)
    monkeypatch.setattr(cached.VectorStore, "write", raising(FULL_DISK))
    assert n_encoded([f"text {i}" for i in range(9)], tmp_path) == 9
    assert caplog.text.count("No space left") == 1


def test_the_least_recently_used_encoder_goes_first(tmp_path, monkeypatch):
    for place, name in enumerate("ab"):
        CachedEncoder(Counting(name * 64), folder=tmp_path).encode(["text"])
        os.utime(stores_of(tmp_path)[-1], ns=(int(1e18) + place, int(1e18) + place))
    CachedEncoder(Counting("a" * 64), folder=tmp_path).encode(["text"])  # used again
    monkeypatch.setattr(cached, "MOST_BYTES", 2.5 * stores_of(tmp_path)[0].stat().st_size)
    CachedEncoder(Counting("c" * 64), folder=tmp_path).encode(["text"])
    assert [path.name[0] for path in stores_of(tmp_path)] == ["a", "c"]


WORKER = """
    import sys, time
    sys.path.insert(0, {tests!r})
    from encoders.test_cached import Counting
    from embedtopics.encoders import CachedEncoder
    from embedtopics.encoders import _cache as cached

    cached.TEXTS_A_WRITE = 4

    class Slow(Counting):
        def encode_with_report(self, texts, *, show_progress=None):
            time.sleep({seconds})
            return super().encode_with_report(texts)

    inner = Slow()
    print("begun", flush=True)
    CachedEncoder(inner, folder={folder!r}).encode([f"text {{i}}" for i in range({n})])
    print(inner.n_texts, flush=True)
"""


def worker(folder, n, seconds):
    code = textwrap.dedent(WORKER).format(
        tests=str(Path(__file__).parents[1]), folder=str(folder), n=n, seconds=seconds
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def n_stored(folder):
    return cached.VectorStore(stores_of(folder)[0]).describe()[1]


@pytest.mark.skipif(os.name == "nt", reason="a process cannot be killed there in this way")
def test_killed_in_the_middle_the_next_run_goes_on_from_there(tmp_path):
    process = worker(tmp_path, 400, 0.05)
    assert process.stdout.readline() == "begun\n"
    while not stores_of(tmp_path) or n_stored(tmp_path) < 20:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    n_kept = n_stored(tmp_path)
    texts = [f"text {i}" for i in range(400)]
    assert 20 <= n_kept < 400 and n_encoded(texts, tmp_path) == 400 - n_kept


def test_two_processes_share_a_cache(tmp_path):
    both = [worker(tmp_path, 60, 0.01) for _ in range(2)]
    for process in both:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert n_encoded([f"text {i}" for i in range(60)], tmp_path) == 0


def test_what_the_encoder_says_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path / "here"))
    assert CachedEncoder(Counting()).folder == tmp_path / "here"
    encoder = CachedEncoder(Counting(), folder=tmp_path)
    assert (encoder.name, encoder.dimensions, encoder.languages) == ("counting", 6, ("en",))
    assert encoder.fingerprint == "f" * 64 and encoder.folder == tmp_path
    assert encoder.max_seq_length is None


def test_what_cannot_be_read_now_is_not_thrown_away(tmp_path, monkeypatch, caplog):
    CachedEncoder(Counting(), folder=tmp_path).encode(["a", "b"])
    with monkeypatch.context() as patch:
        patch.setattr(cached.sqlite3, "connect", raising(sqlite3.OperationalError("locked")))
        assert n_encoded(["a"], tmp_path) == 1
    assert "cannot be read" in caplog.text
    assert n_encoded(["a", "b"], tmp_path) == 0
