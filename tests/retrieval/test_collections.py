"""Text fields, lists, facets, phrases, suggestions, relevance, several documents, words alone."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics import SearchIndex
from embedtopics.errors import CorruptFileError
from embedtopics.retrieval._query import parse_query
from embedtopics.retrieval._similar import UNLIKE
from embedtopics.retrieval._snippets import _shorten
from embedtopics.terms._tokens import texts_with, words_of
from tests.factories import python, refuses
from tests.retrieval.oracle import Tiny, build

RECORDS = [
    {"id": "a", "title": "Heart news", "body": "A heart attack is bad.", "tags": ["x", "y"]},
    {"id": "b", "title": None, "body": "The attack of the heart bird.", "tags": ["y"]},
    {"id": "c", "title": "Owls", "body": None, "tags": []},
    {"id": "d", "title": "Diabetes", "body": "Heart attack\nand diabetes", "tags": None},
]
FIELDS = ["title", "body"]


@pytest.fixture(scope="module")
def index():
    return build(RECORDS, text=FIELDS, id="id")


@pytest.fixture(scope="module")
def news(data_folder):
    frame = pd.read_json(data_folder / "bbc_news" / "bbc_news.jsonl.gz", lines=True)[::3]
    frame = frame.assign(text=frame["text"].str[:400])
    return SearchIndex.build(frame, text="text", encoder="lsa", show_progress=False)


def ids(hits):
    return [hit.id for hit in hits]


class TestFields:
    def test_texts_are_joined_and_each_field_is_known(self, index, tmp_path):
        assert [document.text for document in index] == [
            "Heart news\n\nA heart attack is bad.", "The attack of the heart bird.", "Owls",
            "Diabetes\n\nHeart attack\nand diabetes",
        ]  # fmt: skip
        assert index.columns == {"title": "text", "tags": "list"}
        hit = index.search("bad", 1, mode="lexical")[0]
        assert (hit.field, hit.fields) == ("body", {"title": (0, 10), "body": (12, 34)})
        assert [h.field for h in index.search("owls bird", 2, mode="lexical")] == ["title", "body"]
        assert ids(index.search("owls", where="title == 'Owls'", mode="lexical")) == ["c"]
        # "owls" alone was in no body: BM25 and vectors see both fields.
        assert index.search("owls", 1, mode="dense")[0].similarity == pytest.approx(1)

    def test_files_and_additions_use_the_same_columns(self, tmp_path):
        frame = pd.DataFrame(RECORDS)
        frame.to_parquet(tmp_path / "r.parquet")
        frame.to_json(tmp_path / "r.jsonl", orient="records", lines=True)
        for name in ("r.parquet", "r.jsonl"):
            built = build(tmp_path / name, text=FIELDS, id="id")
            expected = [["x", "y"], ["y"], [], None]
            assert [d.metadata["tags"] for d in built] == expected
        more = [{"id": "e", "title": "New", "body": "hen"}]
        assert built.add(more, show_progress=False) == 1
        assert built.search("hen", 1, mode="lexical")[0].fields == {"title": (0, 3), "body": (5, 8)}
        made = build(frame.drop(columns="id"), text=FIELDS)
        assert len({*made.ids}) == 4  # made of the whole texts

    def test_bad_columns(self):
        for bad in ([], ["title", "title"], ["nothing", "body"], [1, "body"]):
            with refuses("text"):
                build(RECORDS, text=bad, id="id")


class TestLists:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("tags == 'y'", "ab"), ("'y' in tags", "ab"), ("'y' not in tags", "cd"),
            ("tags != 'x'", "bcd"), ("tags in ('x', 'z')", "a"), ("tags is null", "d"),
            ("tags contains 'X'", ""), ("tags startswith 'y'", "ab"), ("tags in ('x')", "a"),
            ("'x' in \"tags\" and 'y' in tags", "a"), ("not ('x' in tags)", "bcd"),
        ],
    )  # fmt: skip
    def test_a_list_passes_where_one_of_its_texts_does(self, index, where, expected):
        assert {*ids(index.search("heart attack owls", where=where))} == {*expected}

    @given(st.lists(st.none() | st.lists(st.text(max_size=3), max_size=3), min_size=1, max_size=4))
    def test_any_texts_come_back_and_are_found(self, lists):
        data = [{"text": f"cat w{n}", "tags": tags} for n, tags in enumerate(lists)]
        built = build(data, text="text")
        assert [d.metadata["tags"] for d in built] == lists
        for tag in {one for tags in lists for one in tags or () if "\0" not in one}:
            quoted = tag.replace("\\", "\\\\").replace("'", "''")
            found = built.search("cat", 9, mode="lexical", where=f"tags == '{quoted}'")
            assert len(found) == sum(tag in (tags or ()) for tags in lists)

    @pytest.mark.parametrize("where", ["tags > 'a'", "tags == 1", "x in tags", "'a' in title"])
    def test_filters_that_lists_do_not_have(self, index, where):
        with refuses("where"):
            index.search("owls", where=where)

    @pytest.mark.parametrize("value", [[1], [["a"]], {"a"}, np.array([["a"]]), [None]])
    def test_other_lists_are_refused(self, value):
        with refuses("column 'tags' of the metadata", row=1):
            build(pd.DataFrame({"text": ["a", "b"], "tags": [["x"], value]}), text="text")

    @pytest.mark.parametrize("stored", ["{", '{"a": 1}', "[1]", "[" * 5000, "5"])
    def test_damage_is_said(self, tmp_path, stored):
        build(RECORDS, tmp_path / "i", text=FIELDS, id="id")
        with sqlite3.connect(tmp_path / "i" / "catalog.sqlite") as catalog:
            catalog.execute("UPDATE metadata SET c1 = ?", (stored,))
        opened = SearchIndex.load(tmp_path / "i", encoder=Tiny())
        with pytest.raises(CorruptFileError):
            opened.search("owls", where="'x' in tags")
            list(opened)

    def test_export(self, index, tmp_path):
        index.export(tmp_path / "p.parquet")
        found = pd.read_parquet(tmp_path / "p.parquet")["tags"].iloc[0]
        assert [*found] == ["x", "y"]


class TestFacets:
    def test_against_pandas(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({
            "text": [f"cat w{n % 7} v{n}" for n in range(90)],
            "source": rng.choice(["A", "B", None], 90),
            "ok": rng.random(90) < 0.3,
            "tags": [[*rng.choice(list("pqrp"), rng.integers(0, 4))] for _ in range(90)],
            "day": pd.to_datetime(rng.integers(2000, 2004, 90).astype(str) + "-03-01"),
        })  # fmt: skip
        built = build(frame, text="text")
        by = ["source", "ok", "tags", "day"]
        found = ids(built.search("w3 w5", 1000, mode="lexical"))
        rows = [built.ids.index(id) for id in found]
        for counted, kept in (
            (built.facets(by=by), frame),
            (built.facets(by=by, where="source == 'A'"), frame[frame.source == "A"]),
            (built.facets("w3 w5", by, mode="lexical"), frame.iloc[rows]),
        ):
            expected = {
                ("source", "A"): (kept.source == "A").sum(),
                ("source", "B"): (kept.source == "B").sum(),
                **{("ok", b): (kept.ok == b).sum() for b in (True, False)},
                **{("tags", t): sum(t in own for own in kept.tags) for t in "pqr"},
                **{("day", f"{y}"): (kept.day.dt.year == y).sum() for y in range(2000, 2004)},
            }
            got = {(c, v): n for c, v, n in counted.itertuples(index=False)}
            assert got == {key: n for key, n in expected.items() if n}
            for _, part in counted.groupby("column"):
                assert part["count"].is_monotonic_decreasing
        assert len(built.facets("w3", "tags", mode="lexical", k=1)) <= 3

    def test_a_column_that_is_not_there(self, index):
        with refuses("by", row=1):
            index.facets(by=["tags", "year"])


class TestPhrases:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ('"heart attack"', "ad"), ('"heart attack" -diabetes', "a"), ("-owls heart", "abd"),
            ('heart -"heart attack"', "b"), ('"attack heart" heart', ""), ("heart -news", "bd"),
            ('"Heart Attack and"', "d"), ("heart -5 attack", "abd"), ('heart "attack', "abd"),
        ],
    )  # fmt: skip
    def test_by_hand(self, index, query, expected):
        assert sorted(ids(index.search(query, 9, mode="lexical"))) == [*expected]

    @given(st.lists(st.sampled_from("cat dog owl hen".split()), min_size=1, max_size=3), st.data())
    def test_against_every_text(self, phrase, data):
        texts = data.draw(st.lists(
            st.lists(st.sampled_from("cat dog owl hen fox".split()), max_size=6).map(" ".join),
            min_size=1, max_size=6,
        ))  # fmt: skip
        held = [i for i, t in enumerate(texts) if f" {' '.join(phrase)} " in f" {t} "]
        assert texts_with(texts, phrase).tolist() == held

    def test_hybrid_obeys_and_dense_reads_the_query_as_it_is(self, index):
        assert {*ids(index.search('"heart attack"'))} == {"a", "d"}
        assert len(index.search('"heart attack"', mode="dense")) == 4
        several = index.search(["owls", '"heart attack"', "-owls"], 9)
        assert [len(hits) for hits in several] == [4, 2, 0]
        kinds = [d.name for d in index.search('"heart attack" -owls').decisions]
        assert kinds == ["phrases", "excluded"]

    def test_stems_find_candidates_and_the_words_decide(self):
        built = SearchIndex.build(
            ["he walks fast", "she is walking fast"], encoder=None, languages=["en"],
            show_progress=False,
        )  # fmt: skip
        assert len(built.search("walk")) == 2
        assert [h.text for h in built.search('"walking fast"')] == ["she is walking fast"]
        assert [h.text for h in built.search("walk -walking")] == ["he walks fast"]

    @given(st.text(alphabet='ab -"\u00e9.', max_size=20))
    def test_a_query_is_read_or_stays_as_it_is(self, query):
        text, phrases, excluded, _ = parse_query(query)
        assert '"' in query or "-" in query or (text, phrases, excluded) == (query, (), ())
        assert all(phrases) and all(excluded)
        left = words_of(query)
        for word in [*words_of(text), *(w for words in excluded for w in words)]:
            assert word in left or '"' in query or "-" in query
        again = parse_query(re.sub('["-]', " ", query))
        assert again.phrases == again.excluded == ()


class TestSuggestions:
    def test_a_word_that_no_text_holds(self, index):
        found = index.search("hart atack owls", mode="lexical")
        assert found.suggestions == {"hart": "heart", "atack": "attack"}
        assert "Did you mean 'attack', 'heart'?" in found.decisions[0].message
        assert index.search("owls qqqqqq").suggestions == {}
        assert index.search(["hart"], mode="lexical").suggestions == {}

    def test_stems_are_shown_as_words_and_removed_ones_not_at_all(self):
        built = SearchIndex.build(
            ["diabetes kills", "malaria kills"], encoder=None, languages=["en"],
            show_progress=False,
        )  # fmt: skip
        assert built.search("diabtes").suggestions == {"diabtes": "diabetes"}
        built.remove([built.ids[0]])
        assert built.search("diabtes").suggestions == {}

    def test_words_of_real_news(self, news):
        found = news.search("parliamant minster presidnt", mode="bm25")
        assert found.mode == "lexical" and found.suggestions == {
            "parliamant": "parliament", "minster": "minister", "presidnt": "president",
        }  # fmt: skip


def test_names_that_other_libraries_use_are_refused_by_name(index):
    for name, value in (("filter", "year > 2000"), ("top_k", 3)):
        with pytest.raises(TypeError, match=name):
            index.search("heart", **{name: value})
    with refuses("id") as caught:
        index.similar("a free text")
    assert "passage=" in str(caught.value)
    built = build([{"id": "a", "text": "heart"}], text="text", id="id")
    newer = [{"id": "a", "text": "owl"}, {"id": "b", "text": "bird"}]
    assert built.add(newer, update=True) == 2
    assert [document.text for document in built] == ["owl", "bird"]


def test_snippets_begin_and_end_at_words():
    text = " ".join("abcdefghijkl"[: 1 + n % 12] for n in range(400))
    for start in [0, *(n + 1 for n in range(1500) if text[n] == " ")]:
        for place in _shorten(text, start, len(text), [(start, start + 5)], 600):
            assert not 0 < place < len(text) or " " in text[place - 1 : place + 1]
    unspaced = "\u4e16\u754c" * 900
    assert _shorten(unspaced, 0, 1800, [(700, 702)], 600) == (550, 1150)


class TestFacetsOfRealNews:
    def test_a_query_of_nothing_counts_next_to_nothing(self, news):
        few, many = (
            news.facets(query, by="label")["count"].sum()
            for query in ("xylophone quartz zebra", "economic growth in europe")
        )
        assert few < 10 < many < len(news)
        hits = news.search("economic growth in europe", 1000, min_score=0.1)
        assert many == len(hits)


class TestRelevance:
    def test_by_hand(self, index):
        hit = index.search("heart zebra", 1, mode="lexical", min_score=0)[0]
        idf = {
            n: np.log(1 + (index_passages(index) - n + 0.5) / (n + 0.5)) for n in (0, held(index))
        }
        share = idf[held(index)] / sum(idf.values())
        assert hit.relevance == pytest.approx(share)
        chance = index._reader.chance(index._reader.newest(), True)
        dense = index.search("heart", 4, mode="dense", min_score=0)
        for one in dense:
            expected = max(0, (one.similarity - chance) / (1 - chance))
            assert one.relevance == pytest.approx(expected)
        both = index.search("heart", 4, weight=0.25, min_score=0)[0]
        near = max(0, (both.similarity - chance) / (1 - chance))
        assert both.relevance == pytest.approx(0.25 * near + 0.75 * (both.bm25 > 0))

    def test_least_relevance_and_where_nothing_was_asked(self, index):
        every = index.search("heart bird", 4, min_score=0)
        least = sorted(hit.relevance for hit in every)[2]
        kept = index.search("heart bird", 4, min_score=least)
        assert ids(kept) == [hit.id for hit in every if hit.relevance >= least]
        assert index.search("heart bird", 4)[0].relevance == every[0].relevance
        assert all(0 <= hit.relevance <= 1 for hit in index.similar(index.ids[0]))
        with refuses("min_score"):
            index.search("heart", min_score=2)

    def test_vectors_of_the_caller_need_no_encoder(self):
        built = SearchIndex.build(
            ["cat", "dog"], embeddings=np.eye(2, 64), encoder=None, languages=[],
            show_progress=False,
        )  # fmt: skip
        best, other = built.search("q", mode="dense", vectors=[np.eye(64)[0]], min_score=0)
        assert best.relevance == pytest.approx(1) and other.relevance == 0


def index_passages(index):
    return index._reader.newest().lexical.n_passages


def held(index):
    return index._reader.newest().lexical.n_holding("heart")


class TestSimilar:
    def test_several_and_not_those_against_brute_force(self):
        rng = np.random.default_rng(3)
        vectors = rng.normal(size=(40, 6))
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        built = build(
            [{"id": str(n), "text": f"t{n}"} for n in range(40)], text="text", id="id",
            embeddings=vectors, encoder=Six(),
        )  # fmt: skip
        for like, unlike, passage in (
            ([1, 2, 3], [], None), ([1], [5, 6], None), ([], [7], "x"), ([4, 9], [8], "x"),
        ):  # fmt: skip
            wanted = [*unit[like], *([np.full(6, 6**-0.5)] if passage else [])]
            query = np.mean(wanted, axis=0)
            query = query - (UNLIKE * unit[unlike].mean(axis=0) if unlike else 0)
            order = np.argsort(-(unit @ query))
            expected = [str(n) for n in order if n not in {*like, *unlike}]
            hits = built.similar(like, 10, passage=passage, unlike=unlike)
            assert ids(hits) == expected[:10]
            best = unit[int(expected[0])] @ query / np.linalg.norm(query)
            assert hits[0].similarity == pytest.approx(best, abs=1e-6)
        assert ids(built.similar([1], 5)) == ids(built.similar(1, 5))

    def test_what_cannot_be_asked(self, index):
        for parameter, arguments in (
            ("id", {"id": []}), ("id", {}), ("id", {"id": ["a", "q"]}),
            ("unlike", {"id": "a", "unlike": ["q"]}), ("unlike", {"id": "a", "unlike": "a"}),
            ("passage", {"passage": " "}),
        ):  # fmt: skip
            with refuses(parameter):
                index.similar(**arguments)


class Six:
    def encode(self, texts):
        return np.ones((len(texts), 6))


class TestWordsAlone:
    def test_no_encoder_is_loaded_anywhere(self, tmp_path):
        shown = python(f"""
import sys
from embedtopics import SearchIndex
index = SearchIndex.build(["cat dog", "owl", None], {str(tmp_path / "i")!r}, encoder=None)
index.add(["a cat sat"])
index.compact()
again = SearchIndex.load(index.folder)
print(len(again.search("cat")), repr(again).split(", ")[2])
print(*{{"torch", "transformers", "tokenizers", "onnxruntime"}} & {{*sys.modules}}, "end")
""")
        assert shown.splitlines()[-2:] == ["2 lexical only", "end"]

    def test_what_needs_vectors_is_refused(self):
        built = SearchIndex.build(["cat", "dog"], encoder=None, show_progress=False)
        assert built.search("cat").mode == "lexical"
        for parameter, options in (
            ("mode", {"mode": "dense"}), ("diversity", {"diversity": 0.5}),
            ("vectors", {"vectors": [[1.0]]}),
        ):  # fmt: skip
            with refuses(parameter):
                built.search("cat", **options)
        for question in (lambda: built.similar(built.ids[0]), built.duplicates):
            with refuses(""):
                question()
        with refuses("embeddings"):
            built.add(["owl"], embeddings=[[1.0]])
