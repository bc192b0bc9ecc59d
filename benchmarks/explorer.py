"""The explorer: how large the page is, and how soon it draws and answers."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.corpora import DATA
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import Corpus, report
from embedtopics.clustering.results import Clustering
from embedtopics.corpus._corpus import corpus_of_fields
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.terms._counts import count_terms
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results import Topic, TopicResult
from tests.report.driving import Browser

__all__ = ["measure", "render"]

N_TEXTS, N_POINTS, N_TOPICS, CHARACTERS = 100_000, 1_000_000, 40, 250
QUERIES = ("graph", "neural net", "the quantum", "learning rates", '"markov"', "e")

HOVER = """(async () => {
  const map = document.getElementById("map"), tip = document.querySelector("#tip");
  const { left, top, width, height } = map.getBoundingClientRect();
  const took = [];
  for (let i = 0; i < 60; i += 1) {
    const at = { clientX: left + width * (0.1 + 0.8 * ((i * 0.618) % 1)),
      clientY: top + height * (0.1 + 0.8 * ((i * 0.414) % 1)), pointerId: 1, bubbles: true };
    const begin = performance.now();
    map.dispatchEvent(new PointerEvent("pointermove", at));
    if (tip.hidden) continue;
    while (Store.about.hasTexts && !tip.querySelector("p").textContent) {
      await new Promise((r) => setTimeout(r, 0));
    }
    took.push(performance.now() - begin);
  }
  return took;
})()"""
SEARCH = """(async () => {
  const box = document.getElementById("search"), seen = document.getElementById("state");
  await Store.loadIndex();
  const took = [];
  for (const query of %s) {
    const changed = new Promise((r) => new MutationObserver((_, o) => { o.disconnect(); r(); })
      .observe(seen, { childList: true }));
    const begin = performance.now();
    box.value = query;
    box.dispatchEvent(new Event("input"));
    await changed;
    took.push(performance.now() - begin);
    await new Promise((r) => setTimeout(r, 600));
  }
  return took;
})()"""
FRAMES = """(async () => {
  const map = document.getElementById("map");
  const { left, top } = map.getBoundingClientRect();
  const at = (k, kind) => new PointerEvent(kind, { clientX: left + 300 + 80 * Math.sin(k / 9),
    clientY: top + 300 + 80 * Math.cos(k / 7), pointerId: 1, bubbles: true, button: 0 });
  map.setPointerCapture = () => {};
  map.dispatchEvent(at(0, "pointerdown"));
  const times = [];
  for (let k = 1; k <= 60; k += 1) {
    map.dispatchEvent(at(k, "pointermove"));
    times.push(await new Promise((r) => requestAnimationFrame(r)));
  }
  map.dispatchEvent(at(61, "pointerup"));
  return times.slice(20).map((t, i) => t - times[i + 19]);
})()"""
KEYNESS = """Store.loadIndex().then(() => {
  const weights = new Float64Array(Store.nDocuments);
  for (let i = 0; i < weights.length; i += 10) weights[i] = 1;
  Store.keyness(weights);
  const begin = performance.now();
  Store.keyness(weights);
  return performance.now() - begin;
})"""


def measure(options: Options) -> dict[str, Any]:
    """Write the pages, and open them in a headless browser; WebGL 2 is played by software there."""
    share = 100 if options.quick else 1
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = make_result(read_texts(N_TEXTS // share))
        points = make_result([f"p{i}" for i in range(N_POINTS // share)], with_texts=False)
        for kind, result, painter in (
            ("with texts", texts, "webgl2"), ("with texts", texts, "cpu"),
            ("points alone", points, "cpu"),
        ):  # fmt: skip
            begin = time.process_time()
            path = report.write_report(result, folder / "page.html")
            row = {"page": kind, "painter": painter, "n_documents": len(result.distinct)}
            row["writing_s"] = time.process_time() - begin
            row["megabytes"] = path.stat().st_size / 1e6
            row |= _opened(path, folder, painter)
            print(f"  {row}", file=sys.stderr)
            rows.append(row)
    return {"characters": CHARACTERS, "pages": rows}


def _opened(path: Path, folder: Path, painter: str) -> dict[str, Any]:
    """Open a page and return milliseconds: until all is drawn, and for each question."""
    with closing(Browser(folder, (1400, 900))) as browser:
        asked = {"cpu": "#cpu=", "webgl2": "#gl="}[painter]
        browser.call("Page.navigate", url=path.as_uri() + asked)
        browser.wait("document.getElementById('map')?.dataset.ready === '1'")
        assert browser.ask("document.getElementById('map').dataset.painter") == painter
        drawn = "performance.getEntriesByName('drawn')[0].startTime"
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
        found = {"drawn_ms": browser.ask(drawn), "first_paint_ms": browser.ask(paint)}
        found["frame_ms"] = float(np.median(browser.ask(FRAMES)))
        hovers = browser.ask(HOVER)
        if hovers:
            found["hover_ms"] = [float(np.quantile(hovers, q)) for q in (0.5, 0.95)]
        if browser.ask("Boolean(Store.about.hasTexts)"):
            searches = browser.ask(SEARCH % json.dumps(QUERIES))
            found["search_ms"] = dict(zip(QUERIES, searches, strict=True))
            found["keyness_ms"] = browser.ask(KEYNESS)
        return found


def read_texts(n_texts: int) -> list[str]:
    """Return distinct pieces of arXiv abstracts, each of 250 characters."""
    pieces: dict[str, None] = {}
    with gzip.open(DATA / "arxiv_abstracts" / "arxiv_abstracts.jsonl.gz", "rt") as file:
        for line in file:
            abstract = " ".join(json.loads(line)["abstract"].split())
            for start in range(0, len(abstract) - CHARACTERS, CHARACTERS):
                pieces[abstract[start : start + CHARACTERS]] = None
            if len(pieces) >= n_texts:
                break
    return list(pieces)[:n_texts]


def make_result(texts: list[str], *, with_texts: bool = True) -> TopicResult:
    """Return a result of these texts whose topics are round clouds; no encoder has read them."""
    corpus = Corpus(texts)
    documents = corpus.distinct()
    n_documents = len(documents)
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(0, N_TOPICS, n_documents)).astype(np.int32)
    rng.shuffle(labels)
    positions = rng.uniform(-10, 10, (N_TOPICS, 2))[labels] + rng.normal(size=(n_documents, 2))
    none = np.zeros((n_documents, 1), dtype=np.float32)
    if with_texts:
        tokens = tokenize([corpus.texts[row] for row in documents.first_rows])
        counts = count_terms(tokens, stop_words=stop_words_for(["en"]))
    else:
        tokens = TokenStream(np.empty(0, np.int32), np.zeros(n_documents + 1, np.int64), ())
        counts = TermCounts(csr_matrix((n_documents, 0), dtype=np.int32), (), np.empty(0, np.int8))
        corpus = corpus_of_fields(**{**vars(corpus), "texts": ("",) * len(corpus)})
    sizes = np.bincount(labels, minlength=N_TOPICS).tolist()
    return TopicResult(
        corpus=corpus,
        distinct=documents,
        embeddings=none,
        graph=NeighborGraph(np.zeros((n_documents, 1), np.int32), none),
        coordinates=none,
        map=positions.astype(np.float32),
        clustering=Clustering(labels, none[:, 0], np.full(N_TOPICS, np.nan)),
        memberships=csr_matrix((n_documents, N_TOPICS), dtype=np.float32),
        tokens=tokens,
        term_counts=counts,
        topic_terms=csr_matrix((N_TOPICS, len(counts.terms))),
        topics=tuple(
            Topic(i, f"topic {i}", size, size / n_documents, (), (), ())
            for i, size in enumerate(sizes)
        ),
    )


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    header = ["page", "documents", "painter", "written in, CPU s", "MB", "drawn after, s",
              "a frame while moving, ms", "hover, ms (95 %)", "search, ms (slowest)",
              "words apart, ms"]  # fmt: skip
    rows = []
    for page in result["pages"]:
        hover, searches = page.get("hover_ms"), [*page.get("search_ms", {}).values()]
        rows.append([
            page["page"], figure(page["n_documents"]), page["painter"],
            figure(page["writing_s"], 1), figure(page["megabytes"], 1),
            figure(page["drawn_ms"] / 1000, 1), figure(page.get("frame_ms")),
            f"{hover[0]:.0f} ({hover[1]:.0f})" if hover else "n/a",
            f"{np.median(searches):.0f} ({max(searches):.0f})" if searches else "n/a",
            figure(page.get("keyness_ms")),
        ])  # fmt: skip
    return markdown_table(header, rows)
