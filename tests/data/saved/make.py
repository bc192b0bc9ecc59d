"""Writes the folders beside this file, and what must be answered from them.

These folders were written by version 0.1.0 and must be readable for ever:
`tests/test_saved_folders.py` opens them with the code as it is now. They are never written anew. A
newer version adds folders of its own under other names, and leaves these alone.

The texts were written for this purpose, and the weights of the checkpoint are drawn at random, so
that nothing here belongs to anyone.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import embedtopics as et

HERE = Path(__file__).resolve().parent
WORDS = {
    "fruit": "apple pear plum cherry orchard harvest juice cider blossom ripe".split(),
    "train": "station rail platform ticket conductor track signal carriage delay timetable".split(),
    "chess": "bishop rook pawn checkmate opening endgame knight castle queen tournament".split(),
}
NEW_TEXTS = [
    "A cider of ripe pear and apple from the orchard.",
    "The conductor saw a signal and a ticket on the platform of the station.",
    "A knight, a rook and a pawn in the endgame of the tournament.",
    "",
]
QUERIES = ["apple juice and cider", "a delay at the station"]
WHERE = "date >= '2024-01-10' and source in ('press', 'forum')"
SENTENCES = [
    "the cat sat on the mat", "a dog ran in the park", "red light \u200b or blue sound",
    "the river and the stone", "sound",
]  # fmt: skip
PIECES = "the a cat dog sat ran on in mat park and or red blue river stone light sound".split()


def themed(n_each=(24, 20, 16), n_dimensions=12):
    """Return a frame of texts on three themes, with repeats and rows without text, and vectors."""
    rng = np.random.default_rng(5)
    centers = np.linalg.qr(rng.normal(size=(n_dimensions, 3)))[0].T
    texts, vectors = [], []
    for theme, (name, words) in enumerate(WORDS.items()):
        for number in range(n_each[theme]):
            texts.append(f"The {name} number {number}: {' '.join(rng.choice(words, 6))}.")
            vectors.append(centers[theme] + 0.1 * rng.normal(size=n_dimensions))
    texts += [texts[0], texts[30], "", None]
    vectors += [vectors[0], vectors[30], np.zeros(n_dimensions), np.zeros(n_dimensions)]
    frame = pd.DataFrame(
        {
            "id": [f"t{number:03}" for number in range(len(texts))],
            "text": pd.Series(texts, dtype=object),
            "date": pd.date_range("2024-01-01", periods=len(texts)),
            "source": rng.choice(["press", "forum", "radio"], len(texts)),
        }
    )
    return frame, np.array(vectors, dtype=np.float32)


def checkpoint(folder):
    """Save a BERT with random weights: two layers, 16 dimensions."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    alone = [letter for letter in letters if letter not in PIECES]
    pieces = [*specials, *PIECES, *alone, *("##" + letter for letter in letters)]
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(7)
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}).save_pretrained(folder)
    return folder


def facts_of(result):
    """Return what a result must tell when it is read again."""
    return {
        "labels": result.labels.tolist(),
        "topics": [[t.label, t.size, list(t.keywords)] for t in result.topics],
        "decisions": [[decision.stage, decision.name] for decision in result.decisions],
        "edits": [edit.name for edit in result.history],
        "map": np.round(result.map.astype(float), 6).tolist(),
    }


def hits_of(hits):
    """Return ids, scores and topics of what each query found."""
    return [[[hit.id, hit.score, hit.topic] for hit in found] for found in hits.hits]


def topics(expected):
    """Save a model that encodes by itself, and an edited result with a file of its names."""
    frame, vectors = themed()
    corpus = et.Corpus.from_frame(frame, text="text", id="id", time="date", group="source")
    encoder = et.RandomProjectionEncoder(48)
    model = et.TopicModel(encoder, n_topics=3, languages=["en"], random_state=3).fit(corpus)
    model.save(HERE / "model")
    expected["model"] = {
        **facts_of(model.result_),
        "new_texts": NEW_TEXTS,
        "predicted": model.predict(NEW_TEXTS).tolist(),
        "shares": np.round(model.transform(NEW_TEXTS).toarray().astype(float), 6).tolist(),
    }
    model = et.TopicModel(
        n_topics=3, languages=["en"], random_state=3, guidance=et.SeedWords([["apple", "pear"]])
    ).fit(corpus, embeddings=vectors)
    kept = et.topics.rename(et.topics.merge(model.result_, [1, 2]), {0: "Games & trains"})
    kept = et.topics.with_stability(kept, 2)
    et.topics.save_result(kept, HERE / "result")
    et.topics.write_labels(kept, HERE / "labels.csv")
    between = 0.9 * vectors[:56:7] + 0.1 * vectors[1:57:7]
    expected["result"] = {
        **facts_of(kept),
        "recurrence": kept.stability.recurrence.tolist(),
        "names": {str(topic): name for topic, name in
                  et.topics.read_labels(HERE / "labels.csv", kept).items()},
        "vectors": between.tolist(),
        "predicted": et.topics.assign(
            kept, [f"new {i}" for i in range(len(between))], embeddings=between
        ).labels.tolist(),
    }  # fmt: skip
    for sheet in et.topics.validation_sheets(model.result_):
        if sheet.task == "word_intrusion":
            questions, key = sheet.write(HERE / "sheets")
    answered = pd.read_csv(questions, dtype=str, encoding="utf-8-sig")
    answered["answer"] = "1"
    answered.to_csv(questions, index=False, encoding="utf-8-sig")
    score = et.evaluation.score_intrusion(questions, key)
    expected["sheets"] = {"n_questions": len(answered), "precision": score.precision}
    return corpus, model.result_


def indexes(folder, corpus, result, expected):
    """Save an index that was added to and removed from, one with a graph and one with codes."""
    encoder = et.RandomProjectionEncoder(48)
    index = et.SearchIndex.build(corpus, folder / "index", encoder=encoder, languages=["en"])
    index.topics(result)
    more = pd.DataFrame(
        {"id": ["n1", "n2"], "text": ["Apple juice from the valley.", "A long delay by rail."],
         "date": pd.to_datetime(["2024-06-01", "2024-06-02"]), "source": ["press", "radio"]}
    )  # fmt: skip
    index.add(et.Corpus.from_frame(more, text="text", id="id", time="date", group="source"))
    index.remove(["t003", "t031"])
    index.save(HERE / "index")
    expected["index"] = {"queries": QUERIES, "where": WHERE, "n": len(index)} | {
        mode: {"all": hits_of(index.search(QUERIES, 5, mode)),
               "some": hits_of(index.search(QUERIES, 5, mode, WHERE))}
        for mode in ("dense", "lexical", "hybrid")
    }  # fmt: skip
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(260, 8)).astype(np.float32)
    asked = rng.normal(size=(3, 8)).astype(np.float32)
    table = pd.DataFrame({"id": range(len(rows)), "text": [f"row {i}" for i in range(len(rows))]})
    table["text"] += " of " + (table["id"] % 7).astype(str)
    for kind, n in (("hnsw", 60), ("ivf", 260)):
        made = et.SearchIndex.build(
            et.Corpus.from_frame(table[:n], text="text", id="id"), folder / kind, encoder=None,
            embeddings=rows[:n], kind=kind, passages=False, languages=[],
        )  # fmt: skip
        made.save(HERE / f"index-{kind}")
        hits = made.search(["a", "b", "c"], 5, "dense", vectors=asked)
        expected[f"index-{kind}"] = {"vectors": asked.tolist(), "hits": hits_of(hits)}


def vectors_of_encoders(expected):
    """Save hidden states, a static encoder, a student and a tuned encoder with their reports."""
    bert = checkpoint("tiny-bert")
    for name, options in (
        ("states-words", {"dtype": "float16"}),
        ("states-tokens", {"dtype": "float32", "words": False, "layers": "last 2"}),
    ):
        states = et.probing.hidden_states(SENTENCES, bert, out=HERE / name, **options)
        expected[name] = {
            "texts": list(states.texts), "words": list(states.words),
            "layers": list(states.layers), "of_text": states.of_text.tolist(),
            "spans": states.spans.tolist(), "missing": states.missing.tolist(),
            "vectors": [states.layer(each).astype(float).tolist() for each in states.layers],
        }  # fmt: skip
    tiny = et.SentenceEncoder(bert)
    static = et.distill(tiny, vocabulary_from=SENTENCES, dimensions=8, min_count=1)
    static.save(HERE / "static")
    expected["static"] = {"texts": SENTENCES, "vectors": static.encode(SENTENCES).tolist()}
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(PIECES, 8)) for _ in range(400)]
    student = et.training.fit_static_student(
        bert, texts, out=HERE / "student", dimensions=8, min_steps=10, epochs=1, batch_size=64,
    )  # fmt: skip
    expected["student"] = {
        "texts": SENTENCES, "best_step": student.report.best_step,
        "vectors": et.StaticEncoder(HERE / "student").encode(SENTENCES).tolist(),
    }  # fmt: skip
    pairs = pd.DataFrame({"a": texts[:100], "b": texts[100:200]})
    pairs["y"] = [
        len({*a.split()} & {*b.split()}) / 18 for a, b in zip(pairs["a"], pairs["b"], strict=True)
    ]
    examples = et.training.read_examples(
        pairs, "graded", columns=("a", "b"), label="y", scale=(0.0, 1.0)
    )
    report = et.training.fit_sts(
        bert, examples, validation=examples, test=examples, allow_overlap=True, epochs=2,
        batch_size=20, learning_rate=2e-3, device="cpu", seed=3, out=HERE / "tuned",
    )  # fmt: skip
    et.training.write_report(replace(report, folder="tuned"), HERE / "tuned")
    tuned = et.SentenceEncoder(HERE / "tuned")
    expected["tuned"] = {
        "texts": SENTENCES, "vectors": tuned.encode(SENTENCES).tolist(),
        "best_step": report.best_step, "verdict": report.diagnosis.verdict,
        "training_loss": report.curves.training_loss.tolist(),
        "before_after": [[c.task, c.metric, c.before, c.after] for c in report.before_after],
    }  # fmt: skip


def main():
    """Write everything; refuses where a folder is there."""
    if (HERE / "expected.json").exists():
        raise SystemExit("the saved folders are kept as they are; name others for a newer version")
    expected = {}
    corpus, result = topics(expected)
    folder = Path(tempfile.mkdtemp())
    try:
        indexes(folder, corpus, result, expected)
        os.chdir(folder)  # the name of the checkpoint is kept, and should not tell where it was
        vectors_of_encoders(expected)
    finally:
        shutil.rmtree(folder)
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ["EMBEDTOPICS_CACHE"] = cache
        main()
