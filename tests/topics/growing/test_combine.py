"""Results of different corpora become one; on equal vectors, as BERTopic merges models."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import embedtopics as et
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph
from embedtopics.report._explorer import explorer_html
from embedtopics.terms._counts import count_terms
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import (
    assign,
    at_resolution,
    combine,
    extend,
    load_result,
    rename,
    save_result,
    update_terms,
    with_stability,
    without_texts,
)
from embedtopics.topics._assign import find_documents
from embedtopics.topics.growing import _combine
from embedtopics.topics.growing._combine import match_topics
from embedtopics.topics.results import Reason
from tests.bertopic_oracle import fit_bertopic
from tests.factories import make_result, refuses


def fit(texts, vectors, **options):
    model = et.TopicModel(languages=[], random_state=2, **options)
    return model.fit(texts, embeddings=vectors).result_


def topics_in(part, whole):
    """Return the topic of the whole with most documents of each topic of a part."""
    place = find_documents(whole.documents.hashes, part.documents.hashes)
    both = pd.crosstab(part.clustering.labels, whole.clustering.labels[place])
    return (
        both.drop(index=NOISE, errors="ignore").drop(columns=NOISE, errors="ignore").idxmax(axis=1)
    )


@pytest.fixture(scope="module")
def parts(branches):
    """Two fits: of the first nine twigs, and of the last nine, six of which both have.

    Some texts are in both.
    """
    texts, vectors = branches
    twig = np.repeat(np.arange(12), [40 + 5 * (i % 3) for i in range(12)])
    twig = np.concatenate([twig, np.full(len(texts) - len(twig), -1)])
    first = np.flatnonzero((twig < 9) & (twig >= 0))[::2]
    second = np.setdiff1d(np.flatnonzero(twig >= 3), first)
    common = first[twig[first] >= 3][::10]
    return [
        fit([texts[i] for i in rows], vectors[rows], n_topics=9)
        for rows in (first, np.sort(np.concatenate([second, common])))
    ]


@pytest.fixture(scope="module")
def whole(parts):
    return combine(parts)


def test_topics_that_match_are_one_and_others_stay(parts, whole):
    assert whole.n_topics == 12
    assert all(len(set(topics_in(part, whole))) == 9 for part in parts)
    decision = whole.decisions[-1]
    assert decision.name == "combined" and len(decision.value) == 6
    assert "6 topics of result 2 match" in whole.history[-1].message
    assert "; 3 were added" in whole.history[-1].message
    new_ids = whole.history[-1].new_ids
    assert list(new_ids) == topics_in(parts[0], whole).tolist()


def test_the_whole_is_a_result_of_all_rows(parts, whole):
    texts = [*parts[0].corpus.texts, *parts[1].corpus.texts]
    corpus = et.Corpus.of(texts)
    assert whole.corpus.texts == corpus.texts
    distinct = corpus.distinct()
    np.testing.assert_array_equal(whole.documents.hashes, distinct.hashes)
    np.testing.assert_array_equal(whole.documents.weights, distinct.weights)
    assert distinct.weights.max() == 2
    tokens = tokenize(corpus.document_texts())
    np.testing.assert_array_equal(whole.tokens.ids, tokens.ids)
    assert whole.tokens.words == tokens.words
    counted = count_terms(tokens, function_words=whole.term_counts.function_words)
    assert (whole.term_counts.counts != counted.counts).nnz == 0
    graph = build_graph(whole.embeddings, 15)
    np.testing.assert_array_equal(whole.graph.indices, graph.indices)
    sizes = np.bincount(whole.labels[whole.labels >= 0])
    assert [topic.size for topic in whole.topics] == sizes.tolist()
    assert (np.diff(sizes) <= 0).all()
    assert whole.tree is None and whole.added is None
    assert (whole.reasons[whole.labels >= 0] == Reason.IN_TOPIC).all()
    assert (whole.reasons[whole.labels < 0] != Reason.IN_TOPIC).all()


def test_documents_keep_their_topics_and_shares(parts, whole):
    first, second = parts
    new_of = [topics_in(part, whole) for part in parts]
    n = len(first.corpus)
    for part, number, begin in ((first, new_of[0], 0), (second, new_of[1], n)):
        moved = np.array([number.get(label, -1) for label in part.labels.tolist()])
        now = whole.labels[begin : begin + len(moved)]
        both = part.documents.of_row
        if begin:  # a text of both has the topic of the first, if it has one there
            in_first = np.isin(part.corpus.hashes[:, 0], first.corpus.hashes[:, 0])
            np.testing.assert_array_equal(now[~in_first], moved[~in_first])
        else:
            kept = moved >= 0
            np.testing.assert_array_equal(now[kept], moved[kept])
            shares = part.memberships[both].toarray()
            place = whole.documents.of_row[:n]
            together = whole.memberships[place].toarray()
            columns = [number[topic] for topic in range(9)]
            np.testing.assert_allclose(together[kept][:, columns], shares[kept], atol=1e-7)
    assert (whole.memberships.sum(axis=1) <= 1 + 1e-5).all()


def test_a_text_without_topic_in_the_first_has_that_of_the_second(parts):
    first, second = parts
    common = np.isin(first.documents.hashes[:, 0], second.documents.hashes[:, 0])
    labels = np.where(common, NOISE, first.clustering.labels).astype(np.int32)
    clustering = dataclasses.replace(first.clustering, labels=labels)
    nothing = first.memberships.multiply((~common)[:, None]).tocsr().astype(np.float32)
    blank = dataclasses.replace(first, clustering=clustering, memberships=nothing)
    whole = combine([blank, second])
    number = topics_in(second, whole)
    place = {h: i for i, h in enumerate(second.documents.hashes[:, 0].tolist())}
    checked = 0
    for h in first.documents.hashes[common, 0].tolist():
        theirs = place[h]
        ours = int(np.flatnonzero(whole.documents.hashes[:, 0] == h)[0])
        label = int(second.clustering.labels[theirs])
        assert whole.clustering.labels[ours] == number.get(label, -1)
        if label >= 0:
            checked += 1
            shares = second.memberships[[theirs]].toarray()[0]
            moved = whole.memberships[[ours]].toarray()[0][[number[t] for t in range(9)]]
            np.testing.assert_allclose(moved, shares, atol=1e-7)
    assert checked >= 5


def test_maps_lie_side_by_side(parts, whole):
    n = len(parts[0].corpus)
    left = whole.map[whole.documents.of_row[:n]]
    np.testing.assert_array_equal(left, parts[0].map[parts[0].documents.of_row])
    fresh = ~np.isin(parts[1].corpus.hashes[:, 0], parts[0].corpus.hashes[:, 0])
    right = whole.map[whole.documents.of_row[n:]][fresh]
    before = parts[1].map[parts[1].documents.of_row][fresh]
    np.testing.assert_allclose(right - right[0], before - before[0], atol=1e-4)
    assert right[:, 0].min() > left[:, 0].max()
    assert whole.coordinates.shape == (len(whole.documents), 16)


def test_the_whole_is_saved_and_answers(parts, whole, branches, tmp_path):
    loaded = load_result(save_result(whole, tmp_path / "whole"))
    np.testing.assert_array_equal(loaded.labels, whole.labels)
    queries = [f"query {i}" for i in range(20)]
    found = assign(loaded, queries, embeddings=branches[1][:20] + 0.01)
    assert (found.labels >= 0).mean() > 0.9
    assert len(et.topics.table(whole)) >= 12 and explorer_html(whole)
    more = et.topics.extend(whole, queries, embeddings=branches[1][:20] + 0.01)
    np.testing.assert_array_equal(more.result.labels[-20:], found.labels)


def test_a_topic_of_texts_that_others_hold_is_left_out(parts, monkeypatch):
    """Of the second only texts are left that the first has in topics of its own."""
    first = parts[0]
    labels = (np.arange(len(first.documents)) % 2).astype(np.int32)
    two = {"labels": labels, "persistence": np.full(2, np.nan)}
    clustering = dataclasses.replace(first.clustering, **two)
    shares = csr_matrix((labels[:, None] == [0, 1]).astype(np.float32))
    changes = {"clustering": clustering, "topics": first.topics[:2], "memberships": shares}
    mixed = dataclasses.replace(first, **changes)
    monkeypatch.setattr(_combine, "MIN_SIMILARITY", 1.0)
    whole = combine([first, mixed])
    assert whole.n_topics == 9 and whole.memberships.shape[1] == 9
    np.testing.assert_array_equal(whole.clustering.labels, first.clustering.labels)


def test_names_that_were_given_stay(parts):
    matches = match_topics(parts[0], parts[1])
    theirs = int(np.flatnonzero(matches >= 0)[0])
    second = rename(parts[1], {theirs: "Theirs"})
    one = combine([parts[0], second])
    assert [t.label for t in one.topics if t.is_named] == ["Theirs"]
    both = combine([rename(parts[0], {int(matches[theirs]): "Ours"}), second])
    assert [t.label for t in both.topics if t.is_named] == ["Ours"]


def test_only_the_nearest_of_two_becomes_one(monkeypatch):
    def result(directions):
        n = len(directions)
        made = make_result(60, n)
        labels = np.arange(len(made.documents)) % n
        vectors = np.array(directions, dtype=np.float32)[labels]
        clustering = dataclasses.replace(made.clustering, labels=labels.astype(np.int32))
        return dataclasses.replace(made, embeddings=vectors, clustering=clustering)

    one = result([[1, 0, 0], [0, 1, 0]])
    other = result([[0.8, 0.6, 0], [0.96, 0.28, 0], [0, 0, 1], [0, 0.75, 0.66143783]])
    for least, expected in ((0.7, [-1, 0, -1, 1]), (0.97, [-1] * 4), (0.9599, [-1, 0, -1, -1])):
        monkeypatch.setattr(_combine, "MIN_SIMILARITY", least)
        assert match_topics(one, other).tolist() == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_same_topics_are_merged_as_by_bertopic(parts, whole):
    from bertopic import BERTopic

    # Without noise, which BERTopic compares as one more topic.
    kept = [np.flatnonzero(part.labels >= 0) for part in parts]
    models = []
    for part, rows in zip(parts, kept, strict=True):
        texts = [part.corpus.texts[row] for row in rows]
        vectors = part.embeddings[part.documents.of_row[rows]]
        models.append(fit_bertopic(texts, vectors, part.labels[rows]))
    theirs = np.array(BERTopic.merge_models(models, min_similarity=0.7).topics_)
    ours = whole.labels[np.concatenate([kept[0], len(parts[0].corpus) + kept[1]])]
    assert len(set(theirs.tolist())) == whole.n_topics == 12
    assert len({*zip(theirs.tolist(), ours.tolist(), strict=True)}) == 12


def test_different_encoders_are_refused(parts):
    first, second = parts
    said = [
        {**p.settings, "encoder": n, "encoder_fingerprint": n}
        for p, n in zip(parts, "ab", strict=True)
    ]
    one, other = (dataclasses.replace(p, settings=s) for p, s in zip(parts, said, strict=True))
    with pytest.raises(InputError, match=r"results 1 and 2 cannot be combined: .* \(a and b"):
        combine([one, other])
    with pytest.raises(InputError, match="the encoder of one is unknown"):
        combine([first, other])
    narrow = dataclasses.replace(second, embeddings=second.embeddings[:, :7])
    with pytest.raises(InputError, match="24 and 7 dimensions"):
        combine([first, narrow])
    turned = dataclasses.replace(second, embeddings=np.roll(second.embeddings, 1, axis=1))
    with pytest.raises(InputError, match=r"common texts have different vectors, such as '"):
        combine([first, turned])


def test_bad_parameters(parts):
    for results in ([parts[0], without_texts(parts[1])], [without_texts(parts[0]), parts[1]]):
        with pytest.raises(InputError, match="shared without its texts"):
            combine(results)
    with refuses("results"):
        combine(parts[:1])


def test_results_without_topics_add_their_texts(branches, parts):
    vectors, some = branches[1], parts[0]
    nothing, again = fit(["a", "b"], vectors[:2]), fit(["c", "d", "e"], vectors[2:5])
    empty = combine([nothing, again])
    assert empty.n_topics == 0 and len(empty.documents) == 5
    sizes = sorted(topic.size for topic in some.topics)
    for results in ([nothing, some], [some, nothing], [nothing, some, again]):
        whole = combine(results)
        assert sorted(topic.size for topic in whole.topics) == sizes
        assert len(whole.corpus) == sum(len(result.corpus) for result in results)
        assert whole.history[-1].parameters["n_results"] == len(results)


def test_columns_and_dates_are_joined(branches):
    texts, vectors = branches
    frames = [
        pd.DataFrame({"text": texts[:60], "when": "2024-01-01", "a": 1}),
        pd.DataFrame({"body": texts[60:140], "day": "2025-01-01", "b": 2}),
    ]
    one = et.Corpus(frames[0], text="text", time="when")
    two = et.Corpus(frames[1], text="body", time="day")
    whole = combine([fit(one, vectors[:60]), fit(two, vectors[60:140])])
    assert whole.corpus.time.dt.year.value_counts().to_dict() == {2025: 80, 2024: 60}
    assert list(whole.corpus.metadata.columns) == ["when", "a", "b"]
    assert any(decision.name == "columns_missing" for decision in whole.corpus.notes)


def test_words_that_any_result_leaves_out_stay_out(parts):
    gone = [part.topics[0].keywords[0] for part in parts]
    whole = combine(
        [update_terms(p, extra_stop_words=[word]) for p, word in zip(parts, gone, strict=True)]
    )
    assert whole.settings["extra_stop_words"] == list(dict.fromkeys(gone))
    words = [term.split() for term in whole.term_counts.terms]
    assert not {end for term in words for end in (term[0], term[-1])} & set(gone)


def test_what_a_combined_result_cannot_do_is_said(whole):
    for question in (lambda: at_resolution(whole, 4), lambda: with_stability(whole, 1)):
        with refuses("result"):
            question()


def test_an_encoder_that_learnt_is_made_again_from_its_texts(toy):
    texts = toy[0]
    fit = et.TopicModel("lsa", languages=["en"]).fit(texts[:80]).result_
    grown = extend(fit, texts[80:90]).result
    queries = [texts[91] + " indeed"]
    for whole in (combine([fit, grown]), combine([grown, fit])):
        assert assign(whole, queries).labels.shape == (1,)
