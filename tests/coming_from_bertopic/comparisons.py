"""What is compared of BERTopic's value and ours: for each row of the table a function of its name.

Topics, words and vectors are the same. Where BERTopic's own answer differs by a known fault, the
comparison says which, and compares the rest.
"""

import json
import re

import numpy as np


def _weights_of(model):
    """Return BERTopic's class-TF-IDF weights of the topics, with its vocabulary."""
    first = 1 if -1 in model.topics_ else 0
    return model.c_tf_idf_.toarray()[first:], list(model.vectorizer_model.get_feature_names_out())


def _assert_same_weights(model, result, tolerance=1e-6):
    weights, words = _weights_of(model)
    assert words == list(result.term_counts.terms)
    np.testing.assert_allclose(result.topic_terms.toarray(), weights, atol=tolerance)


def _words_in(text):
    return set(text.replace(",", " ").split())


def fit(theirs, ours, both):
    np.testing.assert_array_equal(ours.labels_, theirs.topics_)
    _assert_same_weights(theirs, ours.result_)


def fit_transform(theirs, ours, both):
    np.testing.assert_array_equal(ours, theirs[0])


def transform(theirs, ours, both):
    # Words in another order are another text with the same vector here, and so the same topic.
    np.testing.assert_array_equal(ours.labels, theirs[0])
    np.testing.assert_array_equal(ours.labels, both.result.labels[:12])


def partial_fit(theirs, ours, both):
    # BERTopic's needs stages that can go on learning; only the growth itself is compared.
    assert theirs == "needs partial_fit in every stage"
    assert len(ours.result.corpus) == len(both.docs) + 12
    np.testing.assert_array_equal(ours.result.labels[: len(both.docs)], both.result.labels)


def get_params(theirs, ours, both):
    assert theirs["top_n_words"] == len(both.result.topics[0].keywords)
    assert ours["n_topics"] == 8 and ours["ngram_range"] == theirs["n_gram_range"] == (1, 1)


def save(theirs, ours, both):
    assert (ours / "manifest.json").is_file()


def load(theirs, ours, both):
    np.testing.assert_array_equal(ours.labels_, theirs.topics_)
    for topic in range(8):
        saved = ours.result_.topic_terms[topic].toarray().max()
        assert abs(theirs.get_topic(topic)[0][1] - saved) < 1e-6


def push_to_hf_hub(theirs, ours, both):
    assert (ours / "manifest.json").is_file()


def merge_models(theirs, ours, both):
    # Texts that were all in the first model: no topic is added.
    assert len(set(theirs.topics_)) == ours.n_topics == 8


def get_topics(theirs, ours, both):
    for topic, terms in theirs.items():
        mine = ours[ours["topic"] == topic].set_index("term")["weight"]
        for word, weight in terms:
            assert abs(mine[word] - weight) < 1e-6


def get_topic(theirs, ours, both):
    np.testing.assert_allclose(ours["weight"], [weight for _, weight in theirs], atol=1e-6)


def get_topic_info(theirs, ours, both):
    assert ours["topic"].tolist() == theirs["Topic"].tolist()
    assert ours["size"].tolist() == theirs["Count"].tolist()


def get_topic_freq(theirs, ours, both):
    assert sorted(map(tuple, ours.to_numpy())) == sorted(map(tuple, theirs.to_numpy()))


def get_document_info(theirs, ours, both):
    assert ours["text"].tolist() == theirs["Document"].tolist()
    assert ours["topic"].tolist() == theirs["Topic"].tolist()


def get_representative_docs(theirs, ours, both):
    # Both choose; BERTopic by the words of a sample, here by the vectors of all.
    inside = {both.docs[row] for row in np.flatnonzero(both.result.labels == 0)}
    assert set(theirs) <= inside and set(ours["text"]) <= inside
    assert len(ours) >= len(theirs)


def set_topic_labels(theirs, ours, both):
    assert both.topic_model.custom_labels_[0] == ours.topics[0].name == "Floods"


def topic_labels_(theirs, ours, both):
    for topic, label in theirs.items():
        assert _words_in(ours[topic]) & set(label.split("_")[1:])


def generate_topic_labels(theirs, ours, both):
    for theirs_of, ours_of in zip(theirs, ours, strict=True):
        assert len(ours_of.split(", ")) == len(theirs_of.split("_")) - 1 == 2


def find_topics(theirs, ours, both):
    # The vectors of BERTopic's topics are plain means; here deep documents weigh more.
    found, similarities = theirs
    assert ours["topic"].tolist()[0] == found[0]
    assert abs(ours["similarity"].tolist()[0] - similarities[0]) < 0.1


def update_topics(theirs, ours, both):
    assert "people" not in ours.term_counts.terms
    _assert_same_weights(both.topic_model, ours, 1e-4)  # BERTopic cuts the mean topic's length


def merge_topics(theirs, ours, both):
    sizes = [topic.size for topic in ours.topics]
    assert sizes == sorted(both.topic_model.topic_sizes_.values(), reverse=True)
    np.testing.assert_array_equal(ours.labels, both.topic_model.topics_)
    _assert_same_weights(both.topic_model, ours)


def delete_topics(theirs, ours, both):
    np.testing.assert_array_equal(ours.labels, both.topic_model.topics_)


def reduce_topics(theirs, ours, both):
    # BERTopic counts the documents in none as a topic more. Ours merges by Ward's criterion, so
    # that no topic takes all others: the topics that are merged may be other ones.
    assert ours.n_topics == len(set(both.topic_model.topics_) - {-1})
    for reduced in (ours.labels, np.array(both.topic_model.topics_)):
        new_topics = [set(reduced[both.result.labels == topic]) for topic in range(8)]
        assert all(len(topics) == 1 for topics in new_topics)


def reduce_outliers(theirs, ours, both):
    # BERTopic forces all of them; here the doubtful stay out, and who joins goes to the same.
    joined = (both.with_noise.labels == -1) & (ours.labels != -1)
    was = both.with_noise.labels
    np.testing.assert_array_equal(ours.labels[was != -1], was[was != -1])
    np.testing.assert_array_equal(ours.labels[joined], np.array(theirs)[joined])


def topics_over_time(theirs, ours, both):
    for row in theirs.itertuples():
        period = ours.names.index(str(row.Timestamp)[:4])
        assert ours.counts[row.Topic, period] == row.Frequency
        best = ours.terms.of(row.Topic, period)[0]
        assert best in row.Words.split(", ")
    assert int(ours.counts.sum()) == len(both.docs)


def topics_per_class(theirs, ours, both):
    for row in theirs.itertuples():
        group = ours.names.index(row.Class)
        assert ours.counts[row.Topic, group] == row.Frequency
        assert ours.terms.of(row.Topic, group)[:1] == tuple(row.Words.split(", ")[:1])


def hierarchical_topics(theirs, ours, both):
    merged = theirs.sort_values("Distance")
    np.testing.assert_allclose(ours.distances, merged["Distance"], atol=1e-6)
    for number, topics in enumerate(merged["Topics"]):
        assert set(ours.topics_under(ours.n_topics + number)) == set(topics)


def get_topic_tree(theirs, ours, both):
    assert theirs.count("Topic:") == both.hierarchy.n_topics
    for topic in both.result.topics:
        assert topic.name in ours


def approximate_distribution(theirs, ours, both):
    np.testing.assert_allclose(ours.toarray(), theirs[0], atol=1e-6)


def _xs(figure, kind="scatter"):
    """Return the x of each trace of a kind."""
    return [[x for x in trace.x if x is not None] for trace in figure.data if trace.type == kind]


def visualize_barchart(theirs, ours, both):
    # The bars are the weights of the best terms; both draw the same for the same word.
    drawn = [
        {word.strip(): float(x) for word, x in zip(trace.y, trace.x, strict=True)}
        for trace in theirs.data
    ]
    n_shared = 0
    for topic in both.result.topics:
        for word, weight in zip(topic.keywords, topic.weights, strict=True):
            if word in drawn[topic.topic_id]:
                assert abs(drawn[topic.topic_id][word] - weight) < 1e-6
                n_shared += 1
    assert n_shared > 4 * 8 and len(ours.data) == len(drawn) == 8


def visualize_documents(theirs, ours, both):
    counts = sorted(len(x) for x in _xs(ours, "scattergl"))
    assert counts == sorted(topic.size for topic in both.result.topics)


def visualize_document_datamap(theirs, ours, both):
    page = (ours if ours else "").read_text("utf-8")
    assert all(topic.name.split(",")[0] in page for topic in both.result.topics)


def visualize_hierarchy(theirs, ours, both):
    heights = [
        sorted({round(float(x), 6) for trace in _xs(figure) for x in trace if x > 0})
        for figure in (theirs, ours)
    ]
    assert heights[0] == heights[1] and len(heights[0]) == 7


def visualize_hierarchical_documents(theirs, ours, both):
    assert len(theirs.layout.sliders[0].steps) >= 3
    about = json.loads(re.search(r'id="about">(.*?)</script>', ours.read_text("utf-8")).group(1))
    n_themes, of_themes = (
        len(about["themes"]),
        [t for one in about["themes"] for t in one["topics"]],
    )
    assert n_themes == 4 and sorted(of_themes) == list(range(1, 9)) and len(about["topics"]) == 8


def visualize_term_rank(theirs, ours, both):
    # A line goes down from the weight of the topic's best term.
    best = sorted(float(max(trace.y)) for trace in theirs.data)
    np.testing.assert_allclose(sorted(ours.groupby("topic")["weight"].max()), best, atol=1e-6)


def visualize_topics(theirs, ours, both):
    # BERTopic draws a circle for each topic, the map its documents.
    assert sorted(theirs.data[0].marker.size) == sorted(map(len, _xs(ours, "scattergl")))


def visualize_topics_over_time(theirs, ours, both):
    # BERTopic draws counts; here they are shares of what was written in the period.
    lines = [trace for trace in ours.data if trace.type == "scatter" and len(trace.x) == 3]
    for topic, line in enumerate(lines):
        drawn = next(trace for trace in theirs.data if trace.name.startswith(f"{topic}_"))
        shares = np.array(line.y, dtype=float) * both.trends.totals
        np.testing.assert_allclose(shares, np.array(drawn.y, dtype=float), atol=1e-9)
    assert len(lines) == 8


def visualize_topics_per_class(theirs, ours, both):
    groups = both.groups
    for place, trace in enumerate(t for t in ours.data if t.type == "scatter"):
        counts = np.array(trace.x, dtype=float) * groups.totals[place]
        np.testing.assert_allclose(counts, groups.counts[:8, place], atol=1e-9)
    for trace in theirs.data:
        topic = int(trace.name.split("_")[0])
        drawn = dict(zip(trace.y, trace.x, strict=True))
        for place, name in enumerate(groups.names):
            assert drawn.get(name, 0) == groups.counts[topic, place]


def visualize_distribution(theirs, ours, both):
    # BERTopic's windows are of all words, and here all words are terms.
    shares = both.et.topics.mixture(both.result, 0).shares
    np.testing.assert_allclose(sorted(shares[shares > 0]), sorted(x for x in theirs.data[0].x if x),
                               atol=1e-6)  # fmt: skip
    drawn = np.array([x for trace in _xs(ours, "bar") for x in trace])
    np.testing.assert_allclose(sorted(drawn / drawn.sum()), sorted(shares[shares > 0]), atol=1e-6)


def visualize_approximate_distribution(theirs, ours, both):
    # BERTopic credits every word of a window with its cosine; here words add up to the mixture.
    text = json.dumps(ours.to_plotly_json(), default=str)
    assert all(word in text for word in both.docs[0].split()[:5])


def nr_topics(theirs, ours, both):
    ours.set_params(coverage=1.0, **both.options).fit(both.docs, embeddings=both.vectors)
    np.testing.assert_array_equal(ours.labels_, both.result.labels)


def seed_topic_list(theirs, ours, both):
    before = both.vectors.copy()
    ours.set_params(**both.options).fit(both.docs, embeddings=both.vectors)
    np.testing.assert_array_equal(both.vectors, before)
    for words in theirs.seed_topic_list:
        holders = [i for i, text in enumerate(both.docs) if words[0] in text.split()]
        assert len({ours.labels_[i] for i in holders} - {-1}) == 1


def zeroshot_topic_list(theirs, ours, both):
    encoder = both.model.encoder
    ours.set_params(encoder=encoder, **both.options).fit(both.docs)
    anchors = [topic for topic in ours.result_.topics if topic.is_seeded]
    assert [topic.name for topic in anchors] == theirs.zeroshot_topic_list
    name = encoder.encode(theirs.zeroshot_topic_list)[0]
    alike = both.vectors @ name >= theirs.zeroshot_min_similarity
    assert set(ours.labels_[alike]) == {anchors[0].topic_id}


def ctfidf_model(theirs, ours, both):
    from embedtopics.terms._counts import count_by_topic

    counts = count_by_topic(both.result.term_counts.counts, both.result.clustering.labels)
    given = theirs.ctfidf_model.fit(counts).transform(counts.copy()).toarray()
    np.testing.assert_allclose(ours.weighting.fit_transform(counts).toarray(), given, atol=1e-6)


def representation_model(theirs, ours, both):
    assert theirs.representation_model.diversity == 0.3
    for topic in ours.topics:
        known = dict(both.topic_model.get_topic(topic.topic_id, full=False))
        # Which of them are how alike is compared with BERTopic's rule in the tests of the method.
        assert len({*topic.keywords} & {*known}) >= 3, (topic.keywords, known)


def embedding_model(theirs, ours, both):
    assert ours.encoder == theirs.embedding_model == "all-MiniLM-L6-v2"
