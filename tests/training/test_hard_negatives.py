"""Mined negatives, against brute force and against sentence-transformers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.training import Examples, mine_hard_negatives, overlap
from tests.factories import Table, each, refuses
from tests.training.rows import told
from tests.training.tables import examples_of


class Scattered(Table):
    """A vector for each text, from its characters alone; around a theme given by its first."""

    def __init__(self, spread=0.7):
        self.spread = spread

    def encode(self, texts):
        return np.array([self._of(text) for text in texts], dtype=np.float32)

    def _of(self, text):
        theme = np.random.default_rng(ord(text[0])).normal(size=8)
        return theme + self.spread * np.random.default_rng([ord(c) for c in text]).normal(size=8)


def pairs(rows):
    return examples_of("pairs", list(zip(*rows, strict=True)))


def circle(**degrees):
    """Vectors in a plane; the cosine of two is that of the angle between them."""
    return Table(
        {name: [np.cos(np.radians(d)), np.sin(np.radians(d))] for name, d in degrees.items()}
    )


def brute_force(rows, encoder, n, relative, absolute, duplicate_similarity, skip, extra):
    """Nearest texts of each anchor that pass, straight from the words of the docstring."""
    texts = {text for row in rows for text in row} | set(extra)
    made = {text: encoder.encode([text])[0].astype(float) for text in texts}
    made = {text: v / np.linalg.norm(v) for text, v in made.items()}
    pool = {row[1] for row in rows} | set(extra)
    result = []
    for anchor, positive in rows:
        positives = {b for a, b in rows if a == anchor}
        paired = positives | {a for a, b in rows if b == anchor} | {anchor}
        worst = min(made[anchor] @ made[p] for p in positives)
        passed = []
        for text in sorted(pool - paired):
            near = made[anchor] @ made[text]
            if relative is not None and near > worst - relative * abs(worst):
                continue
            if absolute is not None and near > worst - absolute:
                continue
            if (
                duplicate_similarity is not None
                and max(made[text] @ made[p] for p in {anchor, *positives}) >= duplicate_similarity
            ):
                continue
            passed.append((near, text))
        passed.sort(reverse=True)
        negatives = [text for _, text in passed[skip : skip + n]]
        if len(negatives) == n:
            result.append((anchor, positive, *negatives))
    return result


TEXTS = [f"{letter}{number}" for letter in "abc" for number in range(6)]
ROWS = st.lists(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS)).filter(lambda row: row[0] != row[1]),
    min_size=2, max_size=15, unique=True,
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    rows=ROWS,
    n=st.integers(1, 3),
    relative=st.sampled_from([None, 0.0, 0.05, 0.5]),
    absolute=st.sampled_from([None, 0.1]),
    duplicate_similarity=st.sampled_from([None, 0.8]),
    skip=st.integers(0, 2),
    extra=st.lists(st.sampled_from(["d1", "d2", "a9", "b9"]), unique=True),
)
def test_mining_is_brute_force(rows, n, relative, absolute, duplicate_similarity, skip, extra):
    encoder = Scattered()
    expected = brute_force(rows, encoder, n, relative, absolute, duplicate_similarity, skip, extra)
    options = {
        "num_negatives": n, "relative_margin": relative, "absolute_margin": absolute,
        "range_min": skip, "duplicate_similarity": duplicate_similarity, "corpus": extra or None,
    }  # fmt: skip
    if not expected:
        with refuses("num_negatives"):
            mine_hard_negatives(pairs(rows), encoder, **options)
        return
    mined = mine_hard_negatives(pairs(rows), encoder, **options)
    assert list(zip(*mined.columns, strict=True)) == expected
    assert mined.kind == "triplets"
    assert [rows[row] for row in mined.rows] == [row[:2] for row in expected]
    assert told(mined).get("pairs_without_negatives", 0) == len(rows) - len(expected)


@pytest.mark.parametrize(
    "margins",
    [
        {"relative_margin": None},
        {"relative_margin": 0.05},
        {"relative_margin": None, "absolute_margin": 0.2},
        {"relative_margin": 0.3, "absolute_margin": 0.1},
    ],
)
@pytest.mark.parametrize(("n", "skip"), [(1, 0), (3, 0), (2, 2)])
def test_mining_agrees_with_sentence_transformers(margins, n, skip):
    torch, datasets = pytest.importorskip("torch"), pytest.importorskip("datasets")
    library = pytest.importorskip("sentence_transformers.util.hard_negatives")

    class Model(Scattered):
        device = "cpu"

        def encode_document(self, texts, **options):
            made = self.encode(texts).astype(np.float64)
            return made / np.linalg.norm(made, axis=1, keepdims=True)

        encode_query = encode_document

        def similarity(self, one, other):
            return torch.as_tensor(one) @ torch.as_tensor(other).T

        def similarity_pairwise(self, one, other):
            return (torch.as_tensor(one) * torch.as_tensor(other)).sum(dim=1)

    # Anchors are no positives here: the library would take an anchor for its own negative.
    rows = [(f"{theme}q{i % 7}", f"{theme}{i}") for theme in "abcd" for i in range(10)]
    columns = {"anchor": [row[0] for row in rows], "positive": [row[1] for row in rows]}
    options = {"num_negatives": n, "range_min": skip, "range_max": 39, **margins}
    theirs = library.mine_hard_negatives(
        datasets.Dataset.from_dict(columns),
        Model(),
        output_format="n-tuple",
        verbose=False,
        **options,
    )
    ours = mine_hard_negatives(pairs(rows), Scattered(), duplicate_similarity=None, **options)
    assert 5 < len(ours) and len(ours) == len(theirs)
    expected = sorted(tuple(row.values()) for row in theirs)
    assert sorted(zip(*ours.columns, strict=True)) == expected


def test_guards_work_at_their_limits():
    # cos 20 = 0.940; 95 % of it is 0.893, the cosine of 26.8 degrees.
    encoder = circle(a=0, p=20, near=25, far=28, b=180, q=190)
    rows = [("a", "p"), ("b", "q")]
    extra = ["near", "far"]

    def negative(**options):
        mined = mine_hard_negatives(pairs(rows), encoder, corpus=extra, **options)
        return mined.columns[2][0], told(mined)

    assert negative(duplicate_similarity=None)[0] == "far"
    assert negative(duplicate_similarity=None)[1]["negatives_left_out_too_near"] == 1
    assert negative(duplicate_similarity=None, relative_margin=0.03)[0] == "near"
    assert (
        negative(duplicate_similarity=None, relative_margin=None, absolute_margin=0.05)[0] == "far"
    )
    assert negative(duplicate_similarity=None, relative_margin=None, absolute_margin=0.06)[0] == "q"
    # near is a copy of p (5 degrees off, 0.996), far is not (8 degrees, 0.990).
    found, account = negative(relative_margin=None, duplicate_similarity=0.993)
    assert found == "far" and account["negatives_left_out_duplicate"] == 1
    assert negative(duplicate_similarity=None, relative_margin=None, range_min=1)[0] == "far"


def test_a_copy_of_the_positive_in_other_letters_is_no_negative():
    rows = [("a", "P"), ("b", " p"), ("c", "q")]
    encoder = circle(a=0, b=2, c=90, q=120, **{"P": 10, " p": 10})
    mined = mine_hard_negatives(
        pairs(rows), encoder, relative_margin=None, duplicate_similarity=None
    )
    assert mined.columns[2][0] == "q"
    # One text, one vector: it is encoded once.
    assert encoder.asked[-1] == ["a", "b", "c", " p", "q"]


def test_only_so_many_candidates_are_looked_at_for_every_anchor():
    encoder = circle(a=0, p=20, x1=1, x2=2, x3=3, far=90, b=200, q=201, c=300, r=301)
    options = {"corpus": ["x1", "x2", "x3", "far"], "duplicate_similarity": None}
    deep = mine_hard_negatives(pairs([("a", "p"), ("b", "q")]), encoder, range_max=4, **options)
    assert deep.columns[2][0] == "far"
    shallow = mine_hard_negatives(pairs([("a", "p"), ("b", "q")]), encoder, range_max=3, **options)
    assert shallow.columns[0] == ("b",)
    # Another pair of many partners changes nothing for the anchor.
    more = [("a", "p"), ("c", "r"), *(("b", f"x{i}") for i in (1, 2, 3))]
    looked = mine_hard_negatives(pairs(more), encoder, range_max=3, **options)
    assert looked.columns[0] == ("c",)


def test_what_is_mined_is_told():
    rows = [("a", "p"), ("b", "q")]
    mined = mine_hard_negatives(pairs(rows), circle(a=0, p=60, b=180, q=240))
    assert told(mined)["hard_negatives"] == "Table"
    # a and q are 120 degrees apart, b and p as well.
    assert told(mined)["negative_similarity"] == pytest.approx(-0.5, abs=1e-6)
    assert "0.500 of positives" in mined.decisions[-1].message
    assert overlap(mined, pairs(rows)).repeated.tolist() == [0, 1]


WRONG = each(
    num_negatives=[0, 3], range_min=[-1], range_max=[1], relative_margin=[1.5, float("nan")],
    absolute_margin=[-0.1], duplicate_similarity=["yes"],
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bad_parameters_are_refused(name, value):
    options = {"range_min": 1} if name == "range_max" else {}
    with refuses(name):
        mine_hard_negatives(
            pairs([("a", "p"), ("b", "q")]), Scattered(), **options, **{name: value}
        )


def test_other_kinds_encoders_and_vectors_are_refused():
    with refuses("examples"):
        mine_hard_negatives(Examples("texts", (("a",),), None, np.arange(1)), Scattered())
    with refuses("encoder"):
        mine_hard_negatives(pairs([("a", "p")]), 5)
    with refuses("encoder"):
        rows = [("a dog runs", "the dog ran"), ("a cat sat", "the cat sits")]
        mine_hard_negatives(pairs(rows), "tfidf")
