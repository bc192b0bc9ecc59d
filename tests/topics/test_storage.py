"""Results as folders: saved, loaded, damaged, and shared without texts."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.errors import InputError
from embedtopics.topics import assign, extend, levels, recluster
from embedtopics.topics._relabel import regrouped, relabeled
from embedtopics.topics._storage import without_texts, write_arrays
from embedtopics.topics.results import Stability
from tests.factories import fields, make_result, python, refuses, saved_arrays
from tests.topics.editing.altering import assert_same


@pytest.fixture(scope="module")
def fitted(toy):
    texts, vectors, _ = toy
    frame = pd.DataFrame(
        {
            "body": [*texts, None],
            "when": pd.date_range("2024-01-01", periods=len(texts) + 1),
            "mixed": [1, "two", None, 4.5] + [{}] * (len(texts) - 3),
        },
        index=[f"r{i}" for i in range(len(texts) + 1)],
    )
    corpus = et.Corpus(frame, text="body", time="when")
    given = np.vstack([vectors, np.zeros(16)])
    return et.TopicModel(languages=["en"], random_state=3).fit(corpus, embeddings=given)


def same(one, two):
    """Whether two results hold the same arrays, to the bit."""
    assert_same(one, two)
    for name in ("labels", "none_shares", "embeddings", "coordinates", "map"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for part in ("graph", "tree"):
        ours, theirs = getattr(one, part), getattr(two, part)
        for field in dataclasses.fields(ours):
            np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name))


def test_a_loaded_result_is_the_saved_one(fitted, tmp_path):
    loaded = et.TopicModel.load(fitted.save(tmp_path / "model"))
    assert loaded.ngram_range == (1, 2) and loaded.n_neighbors == 15
    one, two = fitted.result_, loaded.result_
    same(one, two)
    np.testing.assert_array_equal(one.tokens.ids, two.tokens.ids)
    assert one.tokens.words == two.tokens.words
    assert one.corpus.texts == two.corpus.texts and one.corpus.ids == two.corpus.ids
    assert one.corpus.index.equals(two.corpus.index)
    pd.testing.assert_series_equal(one.corpus.time, two.corpus.time)
    assert two.corpus.metadata["mixed"].tolist()[:2] == ["1", "two"]


def test_no_pickle_anywhere(fitted, tmp_path):
    folder = fitted.save(tmp_path / "model")
    assert all(array.dtype != object for array in saved_arrays(folder / "arrays.arrow").values())
    assert {p.suffix for p in folder.iterdir()} == {".json", ".arrow", ".npy", ".parquet"}


ODD = {
    "nested": [{}, {}, None],
    "big": [2**70, 1, None],
    "broken": [["\ud83d"], ["fine"], None],
    "category": pd.Categorical(["x", "y", "x"], ordered=True),
    "mixed category": pd.Categorical([1, "y", 1]),
    "zone": pd.to_datetime(["2024-01-01", None, "2024-01-03"], utc=True),
    "complex": [1j, 2j, 3j],
    "lists": [["a"], [], ["b", "c"]],
    1: [1.5, 2.5, np.nan],
    "1": ["one", "two", "three"],
    "topic": ["mine", "mine", "mine"],
    "topic_given": ["too", "too", "too"],
}


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([1, "x", 2.5], name="mixed"),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["group", "n"]),
        pd.Index(["same", "same", "same"]),
        pd.date_range("2024-01-01", periods=3, tz="Europe/Paris"),
    ],
    ids=["mixed", "two levels", "repeated", "dates"],
)
def test_any_metadata_and_index_can_be_saved(tmp_path, index):
    frame = pd.DataFrame(ODD, index=index)
    frame["text"] = ["one text", "another text", "a third"]
    corpus = et.Corpus(frame, text="text")
    model = et.TopicModel(languages=["en"]).fit(corpus, embeddings=np.eye(3))
    noted = [d for d in model.result_.decisions if d.name == "columns_as_text"]
    assert {"nested", "big", "complex", "mixed category"} <= set(noted[0].value)
    loaded = et.TopicModel.load(model.save(tmp_path / "model")).result_.corpus
    assert loaded.texts == corpus.texts
    assert len(loaded.index) == 3 and loaded.index.nlevels == index.nlevels
    assert loaded.metadata["big"].tolist()[:2] == [str(2**70), "1"]
    assert loaded.metadata["big"].isna().tolist() == [False, False, True]
    assert loaded.metadata["category"].array.equals(corpus.metadata["category"].array)
    path = tmp_path / "tables" / "documents.parquet"
    et.topics.export(model.result_, path)
    written = pd.read_parquet(path)
    assert len(written) == 3 and len(set(written.columns)) == len(written.columns)


def test_a_time_column_named_by_a_number_comes_back(tmp_path):
    frame = pd.DataFrame({0: ["a text", "b text"], 1: ["2024-01-01", "2024-01-02"]})
    corpus = et.Corpus(frame, text=0, time=1)
    model = et.TopicModel(languages=["en"]).fit(corpus, embeddings=np.eye(2))
    loaded = et.TopicModel.load(model.save(tmp_path / "model")).result_.corpus
    assert loaded.time.tolist() == corpus.time.tolist()


class Coder:
    """An encoder that says how it is set."""

    dimensions = 4

    def __init__(self, fingerprint):
        self.name, self.fingerprint = "coder", fingerprint

    def encode(self, texts):
        lengths = [[len(t), t.count("e") + 1, t.count("a") + 1, 1] for t in texts]
        return np.array(lengths, dtype=np.float32)


def test_another_encoder_than_the_one_of_the_fit_is_refused(toy, tmp_path):
    texts = toy[0]
    model = et.TopicModel(Coder("one"), languages=["en"]).fit(texts)
    folder = model.save(tmp_path / "model")
    expected = model.predict(["a new text"])
    same = et.TopicModel.load(folder, encoder=Coder("one"))
    np.testing.assert_array_equal(same.predict(["a new text"]), expected)
    with refuses("encoder"):
        et.TopicModel.load(folder, encoder=Coder("two")).predict(["a new text"])
    with refuses("encoder"):
        et.TopicModel.load(folder).predict(["a new text"])
    for encoder in (None, Coder("two")):
        with refuses("encoder"):
            et.topics.extend(model.result_, ["a new text"], encoder=encoder)
    grown = et.topics.extend(model.result_, ["a new text"], encoder=Coder("one")).result
    np.testing.assert_array_equal(grown.labels[-1:], expected)
    np.testing.assert_array_equal(et.TopicModel.load(folder).predict(texts), model.labels_)


def test_the_checkpoint_of_the_fit_may_compute_in_other_numbers(toy, tmp_path):
    model = et.TopicModel(Coder("float32"), languages=["en"]).fit(toy[0])
    folder, new = model.save(tmp_path / "model"), ["a new text"]
    near, far = Coder("int8"), Coder("int8")
    near.space = far.space = "float32"
    near.encode = lambda texts: Coder.encode(near, texts) + 0.01
    far.encode = lambda texts: Coder.encode(far, texts)[:, ::-1]
    expected = model.predict(new)
    np.testing.assert_array_equal(et.TopicModel.load(folder, encoder=near).predict(new), expected)
    with refuses("encoder"):
        et.TopicModel.load(folder, encoder=far).predict(new)
    rounded = et.TopicModel(near, languages=["en"]).fit(toy[0])
    assert rounded.result_.settings["encoder_space"] == "float32"


def test_a_loaded_result_is_read_at_other_resolutions_alike(branched, tmp_path):
    read = recluster(branched, 3, coverage=0.9)
    loaded = et.TopicResult.load(read.save(tmp_path / "result"))
    same(loaded, read)
    pd.testing.assert_frame_equal(levels(loaded), levels(branched))
    assert loaded.stability is None
    for n_topics in (2, 7, "coarse"):
        same(recluster(loaded, n_topics), recluster(read, n_topics))


def test_stability_comes_back(branched, tmp_path):
    n_topics, rng = branched.n_topics, np.random.default_rng(0)
    agreement = rng.random(len(branched.distinct)).astype(np.float32)
    agreement[3] = np.nan
    measured = Stability(*rng.random((3, n_topics)), agreement, rng.random(6), 4)
    result = dataclasses.replace(branched, stability=measured)
    loaded = et.TopicResult.load(result.save(tmp_path / "result"))
    for field in dataclasses.fields(measured):
        np.testing.assert_array_equal(
            getattr(loaded.stability, field.name), getattr(measured, field.name)
        )
    assert isinstance(loaded.stability.n_replicates, int)


def test_how_fine_the_topics_are_comes_back_with_the_model(branches, tmp_path):
    texts, vectors = branches
    model = et.TopicModel(n_topics=5, coverage=0.8, languages=[], random_state=2)
    model.fit(texts, embeddings=vectors)
    loaded = et.TopicModel.load(model.save(tmp_path / "model"))
    assert (loaded.n_topics, loaded.coverage) == (5, 0.8)
    again = loaded.fit(texts, embeddings=vectors)
    np.testing.assert_array_equal(again.labels_, model.labels_)


SAVES_IN_TURN = """
import sys
from tests.factories import make_result
results = [make_result(n_documents=40, n_topics=n, seed=n) for n in (2, 3)]
while True:
    for result in results:
        result.save(sys.argv[1])
    print("saved", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="there a folder is not renamed while it is read")
@pytest.mark.parametrize("n_loads", [20, pytest.param(2000, marks=pytest.mark.slow)])
def test_what_is_loaded_beside_a_process_that_saves_is_one_of_its_results(tmp_path, n_loads):
    saved = {n: make_result(n_documents=40, n_topics=n, seed=n) for n in (2, 3)}
    with subprocess.Popen(
        [sys.executable, "-c", SAVES_IN_TURN, str(tmp_path / "saved")], stdout=subprocess.PIPE
    ) as writer:
        try:
            writer.stdout.readline()
            found = set()
            for _ in range(n_loads):
                loaded = et.TopicResult.load(tmp_path / "saved")
                assert_same(saved[loaded.n_topics], loaded)
                found.add(loaded.n_topics)
            assert writer.poll() is None
        finally:
            writer.kill()
    assert found == {2, 3}
    # What was left by the kill is swept, and the folder is whole.
    saved[2].save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


HEAVY = ("torch", "transformers", "onnxruntime", "sentence_transformers", "faiss", "numba")


def test_loading_needs_no_encoder(tmp_path):
    folder = make_result(n_documents=40, n_topics=2).save(tmp_path / "saved")
    code = (
        "import sys; import embedtopics as et; from embedtopics.topics import table, documents;"
        f"r = et.TopicResult.load({str(folder)!r}); table(r); documents(r);"
        f"print(r.n_topics, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert python(code).split() == ["2"]


def every_array(result):
    for name in ("embeddings", "coordinates", "map"):
        yield name, getattr(result, name)
    for part in ("distinct", "graph", "clustering", "tokens", "term_counts"):
        value = getattr(result, part)
        for field in dataclasses.fields(value):
            if isinstance(getattr(value, field.name), np.ndarray):
                yield f"{part}.{field.name}", getattr(value, field.name)
    matrices = (result.memberships, result.topic_terms, result.term_counts.counts)
    for name, matrix in zip(("memberships", "topic_terms", "counts"), matrices, strict=True):
        for kind in ("data", "indices", "indptr"):
            yield f"{name}.{kind}", getattr(matrix, kind)


@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_every_array_comes_back_bit_for_bit(tmp_path, wide):
    result = make_result()
    counts = result.term_counts.counts.copy()
    counts.indices, counts.indptr = counts.indices.astype(wide), counts.indptr.astype(wide)
    unsorted = result.memberships[:, ::-1].tocsr()
    result = dataclasses.replace(
        result,
        memberships=unsorted,
        term_counts=dataclasses.replace(result.term_counts, counts=counts),
    )
    loaded = et.TopicResult.load(result.save(tmp_path / "saved"))
    pairs = list(zip(every_array(result), every_array(loaded), strict=True))
    assert len(pairs) == 25
    for (name, one), (_, two) in pairs:
        assert one.dtype == two.dtype and one.shape == two.shape, name
        assert one.tobytes() == two.tobytes(), name
        assert two.flags.writeable, name


def test_what_settings_may_hold(tmp_path):
    settings = {
        "nested": {"a": [1, {"b": None}], "c": 2.5}, "pair": (1, 2), "array": np.arange(3),
        "number": np.float32(0.5), "text": np.str_("x"), 3: True, "unknown": float("nan"),
    }  # fmt: skip
    loaded = et.TopicResult.load(make_result(40, 2, settings=settings).save(tmp_path / "saved"))
    assert loaded.settings == {
        "nested": {"a": [1, {"b": None}], "c": 2.5}, "pair": [1, 2], "array": [0, 1, 2],
        "number": 0.5, "text": "x", "3": True, "unknown": None,
    }  # fmt: skip


def test_arrays_of_any_shape_and_kind(tmp_path):
    arrays = {
        "empty": np.empty((0, 3), dtype=np.int16), "scalar": np.array(2.5),
        "truth": np.array([[True], [False]]), "turned": np.arange(6, dtype="u8").reshape(2, 3).T,
        "big": np.array([1, 2], dtype=">i4"), "nan": np.array([np.nan, -0.0, np.inf], np.float16),
    }  # fmt: skip
    write_arrays(tmp_path / "a", arrays)
    read = saved_arrays(tmp_path / "a")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype.newbyteorder("=")
    assert np.signbit(read["nan"][1])
    with pytest.raises(TypeError, match="an array of object"):
        write_arrays(tmp_path / "b", {"objects": np.array([None])})


@pytest.fixture(scope="module")
def blank(branched):
    return without_texts(branched)


def test_a_result_that_is_saved_without_texts_is_one_without_texts(branched, blank, tmp_path):
    loaded = et.TopicResult.load(branched.save(tmp_path / "shared", texts=False))

    assert_same(loaded, et.TopicResult.load(blank.save(tmp_path / "blank")))
    assert set(loaded.corpus.texts) == {""}
    assert branched.corpus.texts[0]  # the result keeps its texts


def test_topics_labels_and_places_stay(branched, blank, tmp_path):
    loaded = et.TopicResult.load(blank.save(tmp_path / "blank"))
    for result in (blank, loaded):
        assert set(result.corpus.texts) == {""} and len(result.corpus) == len(branched.corpus)
        assert fields(result.topics) == fields(branched.topics)
        np.testing.assert_array_equal(result.labels, branched.labels)
        np.testing.assert_array_equal(result.map, branched.map)
        np.testing.assert_array_equal(result.distinct.hashes, branched.distinct.hashes)
        assert (result.topic_terms != branched.topic_terms).nnz == 0
        assert len(result.tokens.ids) == 0 and result.tokens.words == ()
        assert result.term_counts.counts.nnz == 0 and len(result.tokens) == len(result.distinct)
        assert result.decisions[-1].name == "texts_left_out"
    assert branched.corpus.texts[0]  # the caller's result stays as it was


def test_texts_of_the_fit_are_known_again(branched, branches, blank, tmp_path):
    texts, vectors = branches
    loaded = et.TopicResult.load(blank.save(tmp_path / "blank"))
    for result in (blank, loaded):
        found = assign(result, texts)
        np.testing.assert_array_equal(found.labels, branched.labels)
        new = assign(result, ["new"], embeddings=vectors[:1] + 0.1)
        expected = assign(branched, ["new"], embeddings=vectors[:1] + 0.1)
        np.testing.assert_array_equal(new.memberships.toarray(), expected.memberships.toarray())


def test_documents_can_be_added_with_the_terms_as_they_are(branched, branches, blank, tmp_path):
    texts, vectors = branches
    loaded = et.TopicResult.load(blank.save(tmp_path / "blank"))
    new = [texts[0], texts[1] + " and more", "other"]
    one, two = (
        extend(result, new, embeddings=vectors[:3] + 0.01, update_terms=False)
        for result in (branched, loaded)
    )
    assert str(one) == str(two) and one.n_known == 1
    np.testing.assert_array_equal(one.result.labels, two.result.labels)
    np.testing.assert_array_equal(one.result.map, two.result.map)
    assert two.result.corpus.texts[-1] == "other"


def test_what_needs_words_or_would_be_measured_wrongly_is_refused(branches, blank):
    one = np.zeros(blank.n_topics, dtype=int)
    together = np.minimum(blank.clustering.labels, 0), regrouped(blank.memberships, one, 1), [None]
    for ask in (
        lambda: extend(blank, ["new"], embeddings=branches[1][:1]),
        lambda: et.topics.recluster(blank, 4),
        lambda: et.topics.with_stability(blank, 1),
        lambda: relabeled(blank, *together, name="merge", parameters={}, message="all"),
    ):
        with pytest.raises(InputError, match="shared without its texts"):
            ask()


def test_labels_that_were_given_to_documents_are_no_part_of_it(branches):
    texts, vectors = branches
    labels = ["secret" if number % 3 == 0 else None for number in range(len(texts))]
    model = et.TopicModel(languages=[], random_state=2, constraints=et.topics.PartialLabels(labels))
    result = model.fit(texts, embeddings=vectors).result_
    assert result.constraints is not None and without_texts(result).constraints is None


def test_an_encoder_that_learnt_from_the_texts_is_asked_for(toy):
    shared = without_texts(et.TopicModel("lsa", languages=["en"]).fit(toy[0][:80]).result_)
    with pytest.raises(InputError, match="texts that were left out"):
        assign(shared, ["another apple in the orchard"])
