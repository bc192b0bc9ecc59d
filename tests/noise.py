"""Noise as small as the rounding of another machine, for finding tests that hang on the last bit.

EMBEDTOPICS_TEST_NOISE=1e-7 shifts the vectors that fixtures make by normal noise of that size.
Every test has to pass with it as without.
"""

import os

import numpy as np

NOISE = float(os.environ.get("EMBEDTOPICS_TEST_NOISE", 0))


def jittered(vectors):
    """Return the vectors with the noise that was asked for, the same at each call."""
    if not NOISE:
        return vectors
    noise = np.random.default_rng(vectors.size).normal(scale=NOISE, size=vectors.shape)
    return (vectors + noise).astype(vectors.dtype)
