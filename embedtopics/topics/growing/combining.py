"""Results of different corpora as one."""

from __future__ import annotations
