"""Words with labels: entities as seqeval has them, words found again, files that come back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics import TextClassifier, TokenClassifier
from embedtopics.classification import entities, evaluate_tokens
from embedtopics.classification._entities import spans_of
from embedtopics.errors import CorruptFileError
from tests.factories import each, refuses

LABELS = ["O", "B-a", "I-a", "B-b", "I-b"]
rows = st.lists(st.lists(st.sampled_from(LABELS), min_size=1, max_size=9), min_size=1, max_size=9)


@given(rows)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_entities_and_scores_are_those_of_seqeval(labels):
    metrics = pytest.importorskip("seqeval.metrics")
    from seqeval.metrics.sequence_labeling import get_entities

    for row in labels:
        found = spans_of(row)
        assert found == [(begin, end + 1, kind) for kind, begin, end in get_entities(row)]
    guess = [row[::-1] for row in labels]
    scores = evaluate_tokens([*labels, ["O"]], [*guess, ["O"]], n_resamples=0)
    assert scores.loc["all", "f1"] == pytest.approx(metrics.f1_score(labels, guess))
    assert scores.loc["all", "recall"] == pytest.approx(metrics.recall_score(labels, guess))


def test_scores_by_hand():
    truth = [["B-a", "I-a", "O", "B-b"], ["O", "B-a"], ["O", "O"]]
    guess = [["B-a", "I-a", "O", "B-a"], ["O", "B-a"], ["B-b", "O"]]
    scores = evaluate_tokens(truth, guess)
    # Two of three entities by hand, two of four predicted ones.
    assert scores.loc["all", ["n", "precision", "recall", "f1"]].tolist() == [3, 0.5, 2 / 3, 4 / 7]
    assert scores.loc["b", ["n", "precision", "recall", "f1"]].tolist() == [1, 0, 0, 0]
    assert 0 < scores.loc["all", "low"] < 4 / 7 < scores.loc["all", "high"] < 1
    tags = evaluate_tokens([["N", "V"], ["N"]], [["N", "N"], ["N"]])
    assert tags.loc["all", "f1"] == pytest.approx(2 / 3)
    assert tags.loc["N", ["precision", "recall"]].tolist() == pytest.approx([2 / 3, 1])


MARKS = {"BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEW": "BMEW"}


@pytest.mark.parametrize("separator", ["-", "_"])
@pytest.mark.parametrize("scheme", MARKS)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_entities_of_other_schemes_are_those_of_seqeval(scheme, separator, data):
    """The oracle reads BIOES: the marks of other schemes are replaced one by one."""
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    tags = st.tuples(st.sampled_from("BIES"), st.sampled_from(["per", "loc"]))
    row = data.draw(st.lists(st.one_of(st.none(), tags), min_size=1, max_size=9))
    in_bioes = ["O" if tag is None else f"{tag[0]}-{tag[1]}" for tag in row]
    mark_of = dict(zip("BIES", MARKS[scheme], strict=True))
    labels = ["O" if tag is None else f"{mark_of[tag[0]]}{separator}{tag[1]}" for tag in row]

    found = spans_of(labels)

    assert found == [(begin, end + 1, kind) for kind, begin, end in get_entities(in_bioes)]


@pytest.mark.parametrize(
    "tags",
    [
        ["B-per", "I-per", "I-per", "O", "B-loc"],
        ["B-per", "I-per", "E-per", "O", "S-loc"],
        ["B-per", "I-per", "L-per", "O", "U-loc"],
        ["B-per", "M-per", "E-per", "O", "W-loc"],
        ["B_per", "M_per", "E_per", "O", "S_loc"],
        ["b-per", "i-per", "i-per", "o", "b-loc"],
        ["I-per", "I-per", "I-per", "O", "I-loc"],
    ],
)
def test_scores_of_all_schemes_are_those_of_entities(tags):
    words = [["Ana", "de", "Sousa", "left", "Faro"]]

    found = entities(words, [tags])
    scores = evaluate_tokens([tags], [["O"] * 5], n_resamples=0)
    same = evaluate_tokens([tags], [["B-per", "I-per", "I-per", "O", "O"]], n_resamples=0) if (
        "B-per" in tags and "I-per" in tags
    ) else None  # fmt: skip

    assert found[["start", "end", "label"]].to_numpy().tolist() == [[0, 3, "per"], [4, 5, "loc"]]
    assert found["text"].tolist() == ["Ana de Sousa", "Faro"]
    assert scores.loc["all", "f1"] == 0 and scores.loc["all", "n"] == 2
    if same is not None:
        assert same.loc["all", "recall"] == 0.5 and same.loc["all", "precision"] == 1


def test_tags_of_entities_without_a_word_outside_are_entities():
    scores = evaluate_tokens([["B-a", "I-a"]], [["B-a", "B-a"]], n_resamples=0)
    assert scores.loc["all", ["n", "f1"]].tolist() == [1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        ["B", "I", "O"],
        ["per-B", "per-I", "O"],
        ["B-per", "X-per", "O"],
        ["B-per", "I-per", "loc", "O"],
        ["B-per", "I_per", "O"],
        ["B-per", "L-per", "E-per", "O"],
        ["B-per", "I-per", "OTHER"],
        ["N-per", "O"],
    ],
)
def test_tags_of_unknown_or_mixed_schemes_are_refused(labels):
    with refuses("y_true"):
        evaluate_tokens([labels], [labels])
    with refuses("labels"):
        entities([["w"] * len(labels)], [labels])


@pytest.mark.parametrize("labels", [["NOUN", "VERB"], ["N-sing", "V-past"], ["O", "PER", "LOC"]])
def test_classes_of_words_are_scored_word_by_word_and_are_no_entities(labels):
    scores = evaluate_tokens([labels], [[labels[0]] * len(labels)], n_resamples=0)
    assert scores.loc["all", "f1"] == pytest.approx(1 / len(labels))
    with refuses("labels"):
        entities([["w"] * len(labels)], [labels])


SENTENCES = [
    f"the {noun} {verb} {'a ' * (n % 2)}{other} on the mat".split()
    for n, (noun, verb, other) in enumerate(
        (noun, verb, other)
        for noun in ("cat", "dog", "owl") for verb in ("sees", "hears") for other in ("hen", "fox")
    )
]  # fmt: skip


def tagged(words):
    nouns, verbs = {"cat", "dog", "owl", "hen", "fox", "mat"}, {"sees", "hears"}
    return ["NOUN" if w in nouns else "VERB" if w in verbs else "X" for w in words]


@pytest.fixture(scope="module", params=["frozen", "fine_tune"])
def model(request, tiny_bert):
    training = (
        None
        if request.param == "frozen"
        else {"epochs": 40, "learning_rate": 1e-2, "batch_size": 4}
    )
    made = TokenClassifier(tiny_bert, method=request.param, settings=training)
    return made.fit(SENTENCES, [tagged(words) for words in SENTENCES])


def test_words_are_found_again_alone_and_in_any_company(model):
    truth = [tagged(words) for words in SENTENCES]
    assert model.score(SENTENCES, truth) > 0.8
    assert model.classes_.tolist() == ["NOUN", "VERB", "X"]
    some = [["the", "cat"], [], ["dog"] * 40, ["\u200b", "owl"]]
    together = model.predict_proba(some)
    assert [len(found) for found in together] == [2, 0, 40, 2]
    for words, found in zip(some, together, strict=True):
        np.testing.assert_allclose(model.predict_proba([words])[0], found, atol=1e-5)
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_it_comes_back_from_a_folder(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = TokenClassifier.load(tmp_path / "m")
    found, again = model.predict_proba(SENTENCES), loaded.predict_proba(SENTENCES)
    np.testing.assert_allclose(np.concatenate(again), np.concatenate(found), atol=1e-6)
    if model.method == "fine_tune":
        from transformers import AutoModelForTokenClassification

        exported = AutoModelForTokenClassification.from_pretrained(tmp_path / "m" / "model")
        assert list(exported.config.id2label.values()) == ["NOUN", "VERB", "X"]
    (tmp_path / "m" / "classifier.json").write_text("{}")
    with pytest.raises(CorruptFileError):
        TokenClassifier.load(tmp_path / "m")


def test_entities_with_their_text():
    found = entities([["Ada", "saw", "New", "York"]], [["B-person", "O", "B-place", "I-place"]])
    assert found.to_numpy().tolist() == [
        [0, 0, 1, "person", "Ada"], [0, 2, 4, "place", "New York"],
    ]  # fmt: skip


WRONG = {
    "X": ["the cat", [["a"], "b"], [["a"], []], [["a"], [" "]]],
    "y": [[], [["X"]], [["X"], ["X", "X"]], [["X"], [""]]],
}


@pytest.mark.parametrize(("name", "value"), each(**WRONG))
def test_bad_words_and_labels(name, value, tiny_bert):
    given = {"X": [["a"], ["b"]], "y": [["X"], ["Y"]]} | {name: value}
    with refuses(name):
        TokenClassifier(tiny_bert).fit(**given)


def test_other_bad_input(tiny_bert):
    with refuses("y"):
        TokenClassifier(tiny_bert).fit([["a", "b"]], [["X", "X"]])
    with refuses("settings"):
        TokenClassifier(tiny_bert, settings={"epochs": 2}).fit([["a", "b"]], [["X", "Y"]])
    with refuses("method"):
        TokenClassifier(tiny_bert, method="few_shot").fit([["a", "b"]], [["X", "Y"]])
    with refuses("encoder"):
        TokenClassifier("tfidf").fit([["a", "b"]], [["X", "Y"]])


def test_each_class_names_the_class_of_another_folder(model, tmp_path):
    model.save(tmp_path / "words")
    with refuses("folder") as refused:
        TextClassifier.load(tmp_path / "words")
    assert "call et.TokenClassifier.load(" in str(refused.value)

    TextClassifier("tfidf").fit(["a b", "c d", "a e", "c f"], [0, 1, 0, 1]).save(tmp_path / "texts")
    with refuses("folder") as refused:
        TokenClassifier.load(tmp_path / "texts")
    assert "call et.TextClassifier.load(" in str(refused.value)
