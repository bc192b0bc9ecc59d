"""Probes of the vectors of each layer, with baselines and controls."""

from embedtopics.encoders._base import require_torch

require_torch("a probe")
