"""Results of reading and language detection."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array


@dataclass(frozen=True, eq=False)
class DistinctDocuments:
    """The distinct usable texts of a corpus, ordered by content hash.

    Parameters
    ----------
    hashes : uint64 ndarray of shape (n_documents, 2)
        128-bit content hashes, ascending.
    first_rows : int64 ndarray of shape (n_documents,)
        The first row that holds each document.
    of_row : int64 ndarray of shape (n_rows,)
        Document of each row; -1 if the row has no text.
    weights : int64 ndarray of shape (n_documents,)
        Number of rows of each document.
    """

    hashes: npt.NDArray[np.uint64]
    first_rows: Int64Array
    of_row: Int64Array
    weights: Int64Array

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.first_rows)


@dataclass(frozen=True)
class LanguageShares:
    """Languages of a sample of texts.

    Parameters
    ----------
    shares : mapping of str to float
        Share of the sampled texts by ISO 639-1 code, largest first.
    n_sampled : int
        Texts in the sample.
    """

    shares: Mapping[str, float]
    n_sampled: int

    @property
    def main(self) -> str | None:
        """The most frequent language, or None if no language was recognized."""
        return next(iter(self.shares), None)
