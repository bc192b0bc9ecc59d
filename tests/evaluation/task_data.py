"""Small files of examples, and an encoder that needs no checkpoint."""

import gzip
import json
import zlib

import numpy as np

NOUNS = "dog cat bird fish horse cow sheep goat lion wolf".split()
VERBS = "runs sleeps eats sings jumps swims flies hides".split()


class Words:
    """Adds up a fixed random vector for each word."""

    def __init__(self, n_dimensions=24, seed=0):
        self.name = f"words {seed}"
        self.seed, self.n_dimensions, self.calls = seed, n_dimensions, []

    def encode(self, texts):
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    def _vector(self, text):
        made = np.zeros(self.n_dimensions)
        for word in text.lower().split():
            rng = np.random.default_rng([self.seed, zlib.crc32(word.encode())])
            made += rng.normal(size=self.n_dimensions)
        return made


def write_pairs(path, n=40, classes=False):
    """Write pairs of sentences, scored by the words that they share, as csv."""
    rng = np.random.default_rng(0)
    lines = ["sentence1,sentence2,score"]
    for _ in range(n):
        one, other = _sentence(rng), _sentence(rng)
        score = len(set(one.split()) & set(other.split())) + float(rng.integers(0, 3)) / 2
        lines.append(f"{one},{other},{int(score > 4) if classes else score}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_retrieval(folder, suffix=""):
    """Write eight queries, each the text of its document, as BEIR does."""
    rng = np.random.default_rng(1)
    texts = [f"{_sentence(rng)} document {row}" for row in range(12)]
    rows = {
        "corpus": [{"_id": f"d{r}", "title": "", "text": text} for r, text in enumerate(texts)],
        "queries": [{"_id": f"q{r}", "text": texts[r]} for r in range(9)],
    }
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, own in rows.items():
        content = "\n".join(map(json.dumps, own)).encode()
        path = folder / f"{name}.jsonl{suffix}"
        path.write_bytes(gzip.compress(content) if suffix else content)
    judged = "".join(f"q{r}\td{r}\t{1 + r % 2}\n" for r in range(8))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


def _sentence(rng):
    return f"the {rng.choice(NOUNS)} {rng.choice(VERBS)} near a {rng.choice(NOUNS)}"
