"""A raw encoder: a small BERT that has only guessed masked words; and fastText on the same text.

Started as ``python pretrain.py pretrain FOLDER STEPS`` (0 for all) or
``python pretrain.py word-vectors TESTS.json PARAGRAPHS`` (0 for all), which prints the scores of
averaged vectors.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.corpora import DATA

__all__ = ["main", "paragraphs", "rows_of"]

WIDTH, LAYERS, HEADS = 256, 3, 4
LENGTH, BATCH, STEPS, RATE = 64, 32, 4_000, 1e-3
FEW = 2_000
"""Paragraphs of a quick run."""
MASKED = 0.15
"""Share of the tokens to guess; of these 80 % are hidden, 10 % replaced (Devlin et al. 2019)."""


def main() -> None:
    """Do what was asked for, and print what came of it."""
    path = Path(sys.argv[2])
    if sys.argv[1] == "pretrain":
        pretrain(path, int(sys.argv[3]) or STEPS)
        print(path)
    else:
        texts = list(islice(paragraphs(), int(sys.argv[3]) or None))
        print(json.dumps(word_vectors(json.loads(path.read_text("utf-8"))["tests"], texts)))


def paragraphs() -> Iterator[str]:
    """Yield encyclopedia paragraphs, then titles and abstracts."""
    with gzip.open(DATA / "enwiki_2015_sample/articles.jsonl.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            yield from (part for part in json.loads(line)["text"].split("\n") if len(part) > 60)
    with gzip.open(DATA / "arxiv_abstracts/arxiv_abstracts.jsonl.gz", "rt", encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            yield f"{row['title']}. {row['abstract']}"


def rows_of(tokenizer: Any, texts: list[str], length: int, rng: Any) -> Any:
    """Return the shuffled paragraphs as one stream of tokens, cut into rows."""
    ids = []
    for begin in range(0, len(texts), 5_000):
        batch = tokenizer.encode_batch_fast(texts[begin : begin + 5_000], add_special_tokens=False)
        ids += [np.array(one.ids, dtype=np.int32) for one in batch]
    stream = np.concatenate([ids[place] for place in rng.permutation(len(ids))])
    n = len(stream) // length
    return stream[: n * length].reshape(n, length)


def piece_vectors(rows: Any, n_pieces: int) -> Any:
    """Return skip-gram vectors of the word pieces, which the encoder's table starts from.

    On two cores the text is read a third of a time: too little to learn each piece's vector from
    guessing alone.
    """
    from gensim.models import Word2Vec

    sentences = [list(map(str, row)) for row in rows]
    model = Word2Vec(
        sentences, vector_size=WIDTH, window=6, min_count=3, sg=1, negative=8, epochs=1,
        workers=1, sample=1e-4, seed=1,
    )  # fmt: skip
    vectors = np.random.default_rng(0).normal(0, 0.1, (n_pieces, WIDTH)).astype(np.float32)
    for piece, place in model.wv.key_to_index.items():
        vectors[int(piece)] = model.wv.vectors[place]
    vectors -= vectors.mean(axis=0)
    return vectors * (0.04 / vectors.std())


def pretrain(folder: Path, n_steps: int) -> None:
    """Train a small BERT to guess masked words, from random layers."""
    import torch
    from tokenizers import Tokenizer

    from embedtopics import SentenceEncoder

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    # The word pieces of BERT; none of its weights.
    tokenizer = Tokenizer.from_str(SentenceEncoder().tokenizer_json)
    texts = list(islice(paragraphs(), None if n_steps >= 1_000 else FEW))
    rows = rows_of(tokenizer, texts, LENGTH - 2, rng)
    model = small_bert(rows, tokenizer.get_vocab_size())
    print("pieces have vectors", file=sys.stderr)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.01, fused=True
    )
    began, losses = time.time(), []
    for step in range(n_steps):
        rate = RATE * min((step + 1) / 200, 1) * (1 - step / n_steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses.append(learn(model, optimizer, masked(rows, tokenizer, rng)))
        if (step + 1) % 100 == 0:
            pace = (step + 1) * BATCH * LENGTH / (time.time() - began)
            print(f"{step + 1} {np.mean(losses[-100:]):.3f} {pace:.0f} tokens/s", file=sys.stderr)
    save(model, tokenizer, folder)


def small_bert(rows: Any, vocabulary: int) -> Any:
    """Return a BERT with random layers, and vectors of word pieces that were learned from rows."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig(
        vocab_size=vocabulary, hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=4 * WIDTH, max_position_embeddings=256,
    )).train()  # fmt: skip
    table = model.bert.embeddings.word_embeddings.weight
    table.data.copy_(torch.from_numpy(piece_vectors(rows, vocabulary)))
    return model


def masked(rows: Any, tokenizer: Any, rng: Any) -> tuple[Any, Any, Any]:
    """Draw a batch: what is shown, what is true, and where to guess."""
    import torch

    first, last, mask = (tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]", "[MASK]"))
    ids = np.full((BATCH, LENGTH), last, dtype=np.int64)
    ids[:, 0] = first
    ids[:, 1:-1] = rows[rng.integers(0, len(rows), BATCH)]
    truth = torch.from_numpy(ids)
    chosen = torch.from_numpy(rng.random(ids.shape) < MASKED)
    chosen[:, 0] = chosen[:, -1] = False
    fate = torch.from_numpy(rng.random(ids.shape))
    shown = torch.where(chosen & (fate < 0.8), torch.tensor(mask), truth)
    other = torch.from_numpy(rng.integers(0, tokenizer.get_vocab_size(), ids.shape))
    return torch.where(chosen & (fate >= 0.9), other, shown), truth, chosen


def learn(model: Any, optimizer: Any, batch: tuple[Any, Any, Any]) -> float:
    """Take one step; return its loss."""
    import torch

    shown, truth, chosen = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.bert(input_ids=shown).last_hidden_state[chosen]
        guessed = model.cls(hidden)
    loss = torch.nn.functional.cross_entropy(guessed.float(), truth[chosen])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write the encoder, without its guesses, beside its tokenizer."""
    from transformers import PreTrainedTokenizerFast

    model.bert.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=256,
    ).save_pretrained(folder)  # fmt: skip


def word_vectors(tests: dict[str, Any], texts: list[str]) -> list[dict[str, Any]]:
    """Learn fastText vectors of the same text, and score their averages."""
    from score_encoders import scores_of

    from embedtopics.encoders import FastTextEncoder

    return scores_of([FastTextEncoder(WIDTH).fit(texts)], tests)


if __name__ == "__main__":
    main()
