"""The steps of learning against torch, and the phrases against counting by brute force."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from embedtopics._utils.progress import progress_bar
from embedtopics.encoders.static._distill import plain_vocabulary
from embedtopics.training import _student
from embedtopics.training._settings import StudentSettings
from embedtopics.training._student_table import RATE_OF_LOGS, Bagged, learn


def frequent_phrases(vocabulary, texts, *, max_phrases, min_count, min_npmi):
    settings = StudentSettings(
        max_phrases=max_phrases, min_phrase_count=min_count, min_npmi=min_npmi
    )
    return _student.frequent_phrases(vocabulary, texts, settings)


@pytest.mark.parametrize("contrast", [0.0, 0.7])
def test_steps_are_those_of_torch(contrast):
    import torch

    rng = np.random.default_rng(0)
    bags = rng.integers(1, 4, (6, 5)).astype(np.float32)  # every text holds every token
    targets = rng.normal(size=(6, 4))
    targets = (targets / np.linalg.norm(targets, axis=1, keepdims=True)).astype(np.float32)
    table = rng.normal(size=(5, 4)).astype(np.float32)
    weights = rng.uniform(0.2, 2, 5).astype(np.float32)
    chosen = StudentSettings(
        epochs=3, min_steps=0, batch_size=96, learning_rate=0.01, contrast=contrast,
        temperature=0.3, validations_per_epoch=1,
    )  # fmt: skip
    everything = Bagged(csr_matrix(np.repeat(bags, 16, axis=0)), np.repeat(targets, 16, axis=0))
    with progress_bar(total=3, unit="step", description="", show=False) as bar:
        learned = learn(table, weights, everything, everything, chosen, bar)

    rows = torch.tensor(table, dtype=torch.float64, requires_grad=True)
    logs = torch.tensor(np.log(weights), dtype=torch.float64, requires_grad=True)
    rates = [
        {"params": [rows], "lr": 1.0, "base": float(np.sqrt((table**2).mean()))},
        {"params": [logs], "lr": RATE_OF_LOGS, "base": RATE_OF_LOGS},
    ]
    optimiser = torch.optim.Adam(rates, eps=1e-10)
    batches = np.random.default_rng(chosen.random_state)
    batches.permutation(96)  # that of the sample
    losses, step, n_batches, n_steps = [], 0, 16, 48
    counts, wanted = everything.bags.toarray(), everything.targets
    while step < n_steps:
        for part in np.array_split(batches.permutation(96), n_batches):
            step += 1
            rise = min(1.0, step / max(1.0, 0.05 * n_steps))
            for group in optimiser.param_groups:
                group["lr"] = group["base"] * 0.01 * rise * (1 - (step - 1) / n_steps)
            t = torch.tensor(wanted[part], dtype=torch.float64)
            sums = torch.tensor(counts[part], dtype=torch.float64) @ (rows * logs.exp()[:, None])
            s = torch.nn.functional.normalize(sums)
            loss = (1 - (s * t).sum(1)).mean()
            if contrast:
                label = torch.arange(len(part))
                ranking = torch.nn.functional.cross_entropy(s @ t.T / 0.3, label)
                loss = loss + contrast * ranking
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    assert learned.n_steps == n_steps == learned.best_step
    np.testing.assert_allclose(learned.table, rows.detach().numpy(), atol=2e-5)
    np.testing.assert_allclose(learned.weights, logs.exp().detach().numpy(), atol=2e-5)
    epochs = np.array(losses).reshape(3, n_batches).mean(axis=1)
    np.testing.assert_allclose(learned.curves.training_loss, epochs, atol=1e-5)
    assert learned.curves.training_steps.tolist() == [16, 32, 48]


def test_tokens_that_no_text_holds_stay_as_they_are():
    rng = np.random.default_rng(1)
    bags = csr_matrix(np.hstack([rng.integers(0, 3, (80, 6)), np.zeros((80, 2))]), dtype=np.float32)
    targets = rng.normal(size=(80, 3)).astype(np.float32)
    texts = Bagged(bags, targets / np.linalg.norm(targets, axis=1, keepdims=True))
    table = rng.normal(size=(8, 3)).astype(np.float32)
    with progress_bar(total=1, unit="step", description="", show=False) as bar:
        learned = learn(table, np.ones(8, np.float32), texts, texts, StudentSettings(), bar)
    np.testing.assert_array_equal(learned.table[6:], table[6:])
    assert (learned.table[:6] != table[:6]).all() and (learned.weights[6:] == 1).all()


def brute_force(texts, min_count, min_npmi):
    runs = [run for text in texts for run in " ".join(text.split()).split(",")]
    words = Counter(word for run in runs for word in run.split())
    frequent = {word for word, n in words.items() if n >= min_count}
    total = sum(words[word] for word in frequent)
    found = {}
    for n in (2, 3):
        counts = Counter()
        for run in runs:
            split = run.split()
            counts.update(
                tuple(split[i : i + n])
                for i in range(len(split) - n + 1)
                if set(split[i : i + n]) <= frequent
            )
        for phrase, count in counts.items():
            by_chance = math.prod(words[word] / total for word in phrase)
            score = math.log(count / total / by_chance)
            score /= (1 - n) * math.log(count / total) or math.nan
            if count >= min_count and score >= min_npmi - 1e-12:
                found[" ".join(phrase)] = count
    return sorted(found, key=lambda phrase: (-found[phrase], phrase))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["w1", "w2", "w3", "w4", ","]), max_size=9).map(" ".join),
        min_size=1, max_size=12,
    ),
    min_count=st.integers(1, 3),
    min_npmi=st.sampled_from([-0.7431, 0.0123, 0.4217]),
)  # fmt: skip
def test_phrases_are_those_of_brute_force(teacher, texts, min_count, min_npmi):
    vocabulary = plain_vocabulary(teacher.tokenizer_json)
    found = frequent_phrases(
        vocabulary, texts, max_phrases=1000, min_count=min_count, min_npmi=min_npmi
    )
    expected = brute_force(texts, min_count, min_npmi)
    assert found == expected
    assert found[:2] == frequent_phrases(
        vocabulary, texts, max_phrases=2, min_count=min_count, min_npmi=min_npmi
    )
    assert all(first != second for first, second in pairwise(found))


def test_phrases_do_not_reach_across_texts_or_marks(teacher):
    vocabulary = plain_vocabulary(teacher.tokenizer_json)
    texts = ["New york", "new  YORK, city", "york new-york x"] * 5
    options = {"max_phrases": 10, "min_count": 5, "min_npmi": 0.05}
    assert frequent_phrases(vocabulary, texts, **options)[0] == "new york"
    assert "york city" not in frequent_phrases(vocabulary, texts, **options)
    assert frequent_phrases(vocabulary, texts, **(options | {"max_phrases": 0})) == []
    assert frequent_phrases(vocabulary, ["", "?"], **options) == []
