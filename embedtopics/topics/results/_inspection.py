"""Statistics of a corpus before a fit."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from embedtopics._utils.display import Displayed, spell_count
from embedtopics.corpus.results import LanguageShares


@dataclass(frozen=True, repr=False)
class Inspection(Displayed):
    """Statistics of a corpus, and the estimated cost of a fit on this machine.

    Documents are distinct texts; missing rows have no value, empty rows no visible character. Means
    are per document. A sample gives `mean_tokens` (of the encoder), the share of truncated texts
    and the share of unseen tokens. The speed is measured and includes the learning of an encoder;
    it is NaN without an encoder that counts tokens. Seconds and the peak memory in bytes are
    estimates; memory is too low for an encoder with one column per term. `is_long` says whether
    most texts have more than two windows of the encoder; fit their passages, `Corpus.passages`.
    """

    n_rows: int
    n_documents: int
    n_missing: int
    n_empty: int
    n_repeated: int
    languages: LanguageShares
    mean_characters: float
    mean_tokens: float
    truncated_share: float
    unseen_share: float
    tokens_per_second: float
    seconds_to_encode: float
    seconds_after: float
    memory: float
    warnings: tuple[str, ...]
    is_long: bool = False

    def _summary(self) -> str:
        rows = spell_count(self.n_rows, "row", "rows")
        texts = spell_count(self.n_documents, "distinct text", "distinct texts")
        language = self.languages.main or "not recognized"
        return f"{rows}, {texts}, main language: {language}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each statistic.

        Returns
        -------
        DataFrame
            Columns statistic (the name of the attribute) and value; languages are a mapping from
            ISO 639-1 codes to shares, and warnings a list.
        """
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values["languages"] = dict(self.languages.shares)
        values["warnings"] = list(self.warnings)
        return pd.DataFrame(
            {"statistic": list(values), "value": pd.Series(list(values.values()), dtype=object)}
        )
