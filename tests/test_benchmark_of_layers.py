"""The table of layers, from figures made by hand."""

from __future__ import annotations

from benchmarks import layers


def test_the_tables_by_hand():
    states = {
        "seconds": 5.0, "n_pieces": 1_000, "n_words": 800, "n_missing": 1, "n_layers": 7,
        "store_bytes": 1_020, "vector_bytes": 1_000, "peak_bytes": 1_500_000_000,
    }  # fmt: skip
    score = {"what": "probe", "layer": 2, "metric": "accuracy", "value": 0.944, "low": 0.94,
             "high": 0.948, "n": 25_094}  # fmt: skip
    same = {"seconds": 2.0, "n_words": 500, "mean_cosine": 1.0, "least_cosine": 1.0}
    result = {
        "n_sentences": 60,
        "extraction": [{"plain": {"seconds": 4.0, "n_pieces": 1_000}, "states": states}],
        "peers": {
            "embedtopics": same,
            "flair": {"failed": "No module named 'flair'"},
        },
        "probe": {
            "seconds_extraction": 60.0, "seconds_probe": 45.0, "seconds_rest": 90.0,
            "scores": [score, {**score, "what": "majority", "layer": None, "low": None}],
        },
    }  # fmt: skip
    lines = layers.render(result).splitlines()
    assert lines[0].startswith(
        "All 7 layers of 800 words in 60 sentences: 200 tokens a second, the model alone 250, 0.80 "
        "of it. Peak memory 1.50 GB; the store takes 1.020 of its vectors' size. 1 words"
    )
    assert "| embedtopics | 250 | 1.00000 | 1.00000 |" in lines
    assert "| flair |  |  | No module named 'flair' |" in lines
    assert "| probe | 2 | accuracy | 0.9440 | [0.9400, 0.9480] |" in lines
    assert "| majority |  | accuracy | 0.9440 |  |" in lines
