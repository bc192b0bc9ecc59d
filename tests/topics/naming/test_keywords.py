"""Keywords by other methods, beside BERTopic's and by hand, and results that carry them."""

import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import embedtopics as et
from embedtopics import topics
from embedtopics.errors import MissingExtraError, ModelLoadError
from embedtopics.evaluation import npmi
from embedtopics.topics._vectors import recorded_encoder
from embedtopics.topics.naming._keywords import candidates_of
from tests.factories import each, make_result, refuses


@pytest.fixture(scope="module")
def result():
    return make_result(200, 5)


def lists_of(result):
    return [list(zip(t.keywords, t.weights, strict=True)) for t in result.topics]


def words_of(lists):
    return [[term for term, _ in row] for row in lists]


def test_weight_zero_is_the_order_of_the_candidates(branched):
    found = topics.keywords(branched, "npmi", weight=0.0, n_candidates=10)
    assert words_of(found) == [list(topic.keywords) for topic in branched.topics]


def test_weight_one_is_the_mean_npmi(result):
    lists = [row[:5] for row in lists_of(result)]
    found = topics.keywords(
        result, "npmi", weight=1.0, candidates=lists, window=None, keep_repeats=True
    )
    alone = topics.keywords(result, "npmi", weight=1.0, candidates=[row[:1] for row in lists])
    assert alone == [[(row[0][0], 0.0)] for row in lists]  # one term has no pair
    for given, row in zip(lists, found, strict=True):
        terms = [term for term, _ in given]
        means = {
            term: np.mean(npmi([[term, o] for o in terms if o != term], result.tokens, window=None))
            for term in terms
        }
        highest = max([*means.values(), 0.0]) or 1.0
        assert [term for term, _ in row] == sorted(terms, key=lambda t: -means[t])
        for term, score in row:
            assert score == pytest.approx(means[term] / highest)


def test_pairs_of_one_stem_do_not_count():
    texts = ["rate rates river", "rate rates", "river garden", "rate river"]
    settings = {"encoder": "synthetic", "languages": ["en"]}
    result = make_result(40, 1, texts=texts, settings=settings)
    lists = [[("rate", 3.0), ("rates", 2.0), ("river", 1.0)]]
    found = topics.keywords(
        result, "npmi", weight=1.0, candidates=lists, window=None, keep_repeats=True
    )
    first, second = (
        npmi([[word, "river"]], result.tokens, window=None)[0] for word in ("rate", "rates")
    )
    means = {"rate": first, "rates": second, "river": (first + second) / 2}
    highest = max([*means.values(), 0.0]) or 1.0
    assert dict(found[0]) == pytest.approx({term: m / highest for term, m in means.items()})
    without = topics.keywords(result, "npmi", weight=1.0, candidates=lists, window=None)
    assert len({"rate", "rates"} & {term for term, _ in without[0]}) == 1


@pytest.mark.parametrize(
    ("name", "value"), each(weight=[1.5], window=[0], n_terms=[0], n_candidates=[0])
)
def test_bad_parameters_of_npmi(result, name, value):
    with refuses(name):
        topics.keywords(result, "npmi", **{name: value})


@pytest.fixture(scope="module")
def pipeline():
    """A pipeline that knows a few words: goal and rate are nouns, long is an adjective."""
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"IS_ALPHA": True}]], {"POS": "VERB"})
    for word in ("engine", "river", "garden", "line", "field"):
        ruler.add([[{"LOWER": word}]], {"POS": "NOUN"})
    ruler.add([[{"LOWER": "season"}]], {"POS": "ADJ"})
    # A noun only before a certain verb, which is rarer than the rest.
    ruler.add([[{"LOWER": "price"}, {"LOWER": "often"}]], {"POS": "NOUN"}, index=0)
    return nlp


def test_nouns_stay_and_keep_order_and_scores(result, pipeline):
    found = topics.keywords(
        result, "part_of_speech", nlp=pipeline, candidates=lists_of(result), patterns=["NOUN"]
    )
    nouns = {"engine", "river", "garden", "line", "field"}
    for given, row in zip(lists_of(result), found, strict=True):
        assert row == [(term, score) for term, score in given if term in nouns]
    assert any(found)


def test_most_readings_decide(result, pipeline):
    lists = [[("price", 1.0)]] * result.n_topics
    strict = topics.keywords(result, "part_of_speech", nlp=pipeline, candidates=lists)
    lenient = topics.keywords(
        result, "part_of_speech", nlp=pipeline, candidates=lists, min_share=0.0
    )
    assert strict == [[]] * 5
    assert [("price", 1.0)] in lenient


def test_a_term_of_no_central_document_is_looked_for(pipeline):
    texts = ["river river river"] * 8 + ["garden river"]
    result = make_result(60, 1, texts=[f"{t} no{i}" for i, t in enumerate(texts)])
    lists = [[("garden", 1.0)]]
    found = topics.keywords(result, "part_of_speech", nlp=pipeline, n_documents=1, candidates=lists)
    assert found == lists


def test_no_pipeline(result, monkeypatch):
    with refuses("nlp"):
        topics.keywords(result, "part_of_speech", nlp=7)
    spacy = pytest.importorskip("spacy")
    with refuses("nlp"):  # it gives no tags
        topics.keywords(result, "part_of_speech", nlp=spacy.blank("en"))
    with pytest.raises(ModelLoadError, match="'no_such_pipeline'"):
        topics.keywords(result, "part_of_speech", nlp="no_such_pipeline")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"embedtopics\[pos\]"):
        topics.keywords(result, "part_of_speech", nlp="en_core_web_sm")


@pytest.mark.parametrize("patterns", [[], ["NOUNS"], [""]])
def test_bad_patterns(result, patterns):
    with refuses("patterns"):
        topics.keywords(result, "part_of_speech", nlp=object(), patterns=patterns)


def test_with_keywords_changes_only_the_words(result):
    lists = topics.keywords(result, "diverse", encoder="documents", n_terms=4)
    changed = topics.with_keywords(result, lists, method="diverse")
    for topic, row in zip(changed.topics, lists, strict=True):
        assert topic.keywords == tuple(term for term, _ in row)
        assert topic.weights == tuple(score for _, score in row)
        assert topic.label.startswith(", ".join(topic.keywords[:3]))
    assert changed.clustering is result.clustering and changed.topic_terms is result.topic_terms
    assert [t.size for t in changed.topics] == [t.size for t in result.topics]
    edit = changed.history[-1]
    assert edit.name == "with_keywords" and edit.new_ids == tuple(range(5))
    assert len(edit.marks) == 5 and "diverse" in edit.message


def test_names_stay_distinct_and_others_as_they_are(result):
    lists = [row[::-1] for row in lists_of(result)]
    taken = ", ".join(term for term, _ in lists[2][:3])
    named = topics.rename(result, {4: taken})
    labels = [topic.label for topic in topics.with_keywords(named, lists).topics]
    assert labels[4] == taken and len(set(labels)) == len(labels)
    longer = topics.make_labels(result, 5)
    some = topics.with_keywords(longer, [lists[1], []], topics=[1, 3])
    assert [a.label == b.label for a, b in zip(some.topics, longer.topics, strict=True)] == [
        True, False, True, True, True,
    ]  # fmt: skip
    again = topics.replay(longer, some.history[1:])
    assert again.topics == some.topics and again.decisions == some.decisions


def test_topics_without_new_keywords_keep_theirs_and_it_is_said(result):
    lists = [row[:2] for row in lists_of(result)]
    lists[3] = []
    changed = topics.with_keywords(result, lists, method="nouns")
    assert changed.topics[3].keywords == result.topics[3].keywords
    decision = changed.decisions[-1]
    assert (decision.name, decision.value) == ("keywords_kept", ["3"])
    assert "nouns" in decision.message
    assert changed.history[-1].parameters["topics"] == list(range(5))


def test_some_topics_by_number(result):
    lists = [[("river", 1.0)], [("garden", 2.0), ("engine", 1.0)]]
    changed = topics.with_keywords(result, lists, topics=[2, 0])
    assert changed.topics[2].keywords == ("river",)
    assert changed.topics[0].keywords == ("garden", "engine")
    assert changed.topics[1] == result.topics[1]
    with refuses("topics"):
        topics.with_keywords(result, lists, topics=[2, 2])
    with refuses("topic"):
        topics.with_keywords(result, lists, topics=[2, 7])
    with refuses("keywords"):
        topics.with_keywords(result, lists, topics=[2])


@pytest.mark.parametrize(
    "lists", [[], [["river"]] * 5, [[("nowhere", 1.0)]] * 5]
)  # fmt: skip
def test_bad_keywords(result, lists):
    with refuses("keywords"):
        topics.with_keywords(result, lists)
    with refuses("method"):
        topics.with_keywords(result, lists_of(result), method=" ")


DOCUMENTS = {"encoder": "documents"}


class WordEncoder:
    """A vector of its own for every text, and a count of the texts that were asked for."""

    name = "words"

    def __init__(self, width):
        self.width, self.asked = width, []

    def encode(self, texts):
        self.asked += list(texts)
        return np.array(
            [np.random.default_rng([ord(c) for c in t]).normal(size=self.width) for t in texts]
        )

    def embed(self, texts):
        return self.encode(texts) if isinstance(texts, list) else self.encode([texts])


class BertopicStub:
    """What KeyBERTInspired asks of a model."""

    def __init__(self, encoder):
        self.encoder = encoder

    def _extract_embeddings(self, documents, method, verbose):
        return self.encoder.embed(documents)


@pytest.fixture(scope="module")
def bertopic():
    """Its way of choosing terms; importing it warns of what it could have, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("bertopic.representation")


def test_ranking_is_that_of_bertopic(result, bertopic):
    encoder = WordEncoder(result.embeddings.shape[1])
    found = topics.keywords(result, "embedding", encoder=encoder, n_terms=8, keep_repeats=True)
    candidates = {
        topic: [term for term, _ in row] for topic, row in enumerate(candidates_of(result, 100))
    }
    typical = [result.documents.of_row[list(t.representatives)] for t in result.topics]
    ends = np.cumsum([0, *map(len, typical)])
    theirs = bertopic.KeyBERTInspired(top_n_words=8)
    similarity, vocabulary = theirs._extract_embeddings(
        BertopicStub(encoder),
        candidates,
        [],
        [list(range(a, b)) for a, b in pairwise(ends)],
        result.embeddings[np.concatenate(typical)],
    )
    expected = theirs._extract_top_words(vocabulary, candidates, similarity)
    for topic, row in enumerate(found):
        assert [term for term, _ in row] == [term for term, _ in expected[topic]]
        np.testing.assert_allclose([s for _, s in row], [s for _, s in expected[topic]], atol=1e-6)


@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7, 1.0])
def test_diverse_terms_are_those_of_mmr(result, bertopic, diversity):
    from bertopic.representation._mmr import mmr

    encoder = WordEncoder(result.embeddings.shape[1])
    lists = candidates_of(result, 25)
    found = topics.keywords(
        result,
        "diverse",
        diversity=diversity,
        encoder=encoder,
        n_terms=7,
        candidates=lists,
        keep_repeats=True,
    )
    for topic, row in enumerate(found):
        words = [term for term, _ in lists[topic]]
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        mean = result.embeddings[typical].mean(axis=0)[None]
        vectors = encoder.encode(words)
        assert [term for term, _ in row] == mmr(mean, vectors, words, diversity, 7)
        expected = cosine_similarity(vectors, mean).ravel()
        at = [words.index(term) for term, _ in row]
        np.testing.assert_allclose([s for _, s in row], expected[at], atol=1e-6)


def test_without_an_encoder_terms_are_seen_from_the_middle(result):
    found = topics.keywords(result, "embedding", encoder="documents", n_terms=200, n_candidates=40)
    middle = result.embeddings.mean(axis=0, dtype=np.float64)
    for topic, row in enumerate(found):
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        direction = result.embeddings[typical].mean(axis=0, dtype=np.float64) - middle
        for term, score in row:
            column = result.term_counts.terms.index(term)
            holders = result.term_counts.counts[:, column].toarray().ravel() > 0
            vector = result.embeddings[holders].mean(axis=0, dtype=np.float64) - middle
            cosine = vector @ direction / np.linalg.norm(vector) / np.linalg.norm(direction)
            assert score == pytest.approx(cosine, abs=1e-4)


def test_repeats_are_left_out_unless_asked_for(result):
    lists = [[(term, 1.0) for term in result.term_counts.terms[:40]]] * result.n_topics
    kept = topics.keywords(
        result, "embedding", encoder="documents", n_terms=40, candidates=lists, keep_repeats=True
    )
    assert all(len(row) == 40 for row in kept)
    lists = [[("goal", 1.0), ("goals", 1.0), ("match", 1.0)]]
    with_english = make_result(
        texts=["goal goals match", "goals goal match tax"], n_topics=1,
        settings={"encoder": "synthetic", "languages": ["en"]},
    )  # fmt: skip
    found = topics.keywords(with_english, "diverse", encoder="documents", candidates=lists)
    assert len({term.rstrip("s") for term, _ in found[0]}) == len(found[0]) == 2


def test_encoder_of_the_fit_is_made_again(toy):
    texts, _, _ = toy
    result = et.TopicModel("lsa", random_state=0, languages=["en"]).fit(texts).result_
    found = topics.keywords(result, "embedding", n_terms=3, keep_repeats=True)
    encoder = recorded_encoder(result)
    for topic, row in enumerate(found):
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        mean = result.embeddings[typical].mean(axis=0, dtype=np.float64)
        made = np.asarray(encoder.encode([term for term, _ in row]), dtype=np.float64)
        cosines = cosine_similarity(made, mean[None]).ravel()
        np.testing.assert_allclose([s for _, s in row], cosines, atol=1e-5)


def test_no_topics_no_lists_and_one_topic_is_not_seen_from_itself(result):
    empty, single = make_result(60, 0), make_result(60, 1)
    for method, options in (("npmi", {}), *((m, DOCUMENTS) for m in ("embedding", "diverse"))):
        assert topics.keywords(empty, method, **options) == []
    found = topics.keywords(single, "embedding", n_terms=3, **DOCUMENTS)
    assert len(found[0]) == 3 and found[0][0][1] > 0.5
    some = topics.keywords(result, "diverse", candidates=[[], *candidates_of(result, 5)[1:]],
                           **DOCUMENTS)  # fmt: skip
    assert some[0] == [] and all(some[1:])


CANDIDATES = [
    [[]],
    [["goal"]] * 5,
    [[("nonsense", 1.0)]] * 5,
    [[("river", float("nan"))]] * 5,
    [[("river", 1), ("river", 2)]] * 5,
]


@pytest.mark.parametrize(
    ("bad", "parameter"),
    [
        ({"n_documents": 0}, "n_documents"),
        ({"encoder": None}, "encoder"),
        ({"encoder": WordEncoder(3)}, "encoder"),
        ({"method": "keybert"}, "method"),
        ({"diversity": 0.5, "method": "embedding"}, "diversity"),
        *(({"diversity": value}, "diversity") for value in (-0.1, 1.1, float("nan"))),
        *(({"candidates": lists}, "candidates") for lists in CANDIDATES),
    ],
)
def test_bad_input(result, bad, parameter):
    with refuses(parameter):
        topics.keywords(result, **{"encoder": "documents", **bad})
