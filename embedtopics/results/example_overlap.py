"""What two sets of examples have in common."""

from __future__ import annotations

from dataclasses import dataclass

from embedtopics.protocols import Int64Array

__all__ = ["ExampleOverlap"]


@dataclass(frozen=True, eq=False)
class ExampleOverlap:
    """What of a test set an encoder meets in training.

    Texts are compared without regard to case and white space.

    Parameters
    ----------
    n_train, n_test : int
        Examples.
    n_shared_examples : int
        Distinct pairs of texts (in either order, unless both sets are of premises and hypotheses)
        that occur in both sets; distinct texts where neither set has pairs.
    n_shared_texts, n_test_texts : int
        Distinct texts that occur in both sets, and in the test set.
    repeated : int64 ndarray of shape (n_repeated,)
        Places of the test examples that occur in the training set.
    known : int64 ndarray of shape (n_known,)
        Places of the test examples whose texts all occur in the training set, together or not.
    touched : int64 ndarray of shape (n_touched,)
        Places of the test examples of which at least one text occurs in the training set.
    """

    n_train: int
    n_test: int
    n_shared_examples: int
    n_shared_texts: int
    n_test_texts: int
    repeated: Int64Array
    known: Int64Array
    touched: Int64Array

    @property
    def summary(self) -> str:
        """The figures in one sentence."""
        n = max(1, self.n_test)
        return (
            f"Of {self.n_test:,} test examples, {len(self.repeated):,} "
            f"({len(self.repeated) / n:.1%}) occur in the training set, {len(self.known):,} "
            f"({len(self.known) / n:.1%}) have all their texts there and {len(self.touched):,} "
            f"({len(self.touched) / n:.1%}) at least one."
        )
