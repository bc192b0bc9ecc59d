"""Jobs: functions from the rows of a shard to a table, deterministic for given rows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from embedtopics._utils.folders import MANIFEST, manifest_of
from embedtopics.batch._rows import Columns, ShardRows
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT
from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class EmbedTexts:
    """Vectors of texts.

    Parameters
    ----------
    encoder : str
        A checkpoint, or the folder of a static encoder. It must not learn from the texts.
    """

    encoder: str
    name: ClassVar[str] = "embed"
    row_bytes: ClassVar[int] = 1600

    def fingerprint(self, columns: Columns) -> str:
        """Return a digest of everything the vectors depend on."""
        return str(self.load().fingerprint or "")

    def load(self) -> Any:
        """Load the encoder without a cache: the parts hold the vectors."""
        from embedtopics.encoders._registry import resolve_encoder

        encoder = resolve_encoder(self.encoder)
        if encoder.learns:
            expected = "a checkpoint, so that a text has the same vector in every shard"
            raise InputError("encoder", expected, self.encoder)
        return encoder

    def table(self, encoder: Any, rows: ShardRows, columns: Columns) -> pa.Table:
        """Return the number, id and vector of each row; rows without text have no vector."""
        import pyarrow as pa

        from embedtopics.topics._vectors import encode_documents

        corpus = Corpus(rows.texts)
        distinct = corpus.distinct()
        encoded: Any = ()
        if len(distinct):
            texts = corpus.document_texts()
            encoded, _ = encode_documents(encoder, texts, distinct.first_rows, show_progress=False)
        vectors = [encoded[one] if one >= 0 else None for one in distinct.of_row.tolist()]
        return pa.table({**_keys(rows), "vector": pa.array(vectors, pa.list_(pa.float32()))})


@dataclass(frozen=True)
class _OfSavedModel:
    """A job whose results depend on the folder of a saved model."""

    model: str | Path
    row_bytes: ClassVar[int] = 60
    parameter: ClassVar[str] = "model"

    def fingerprint(self, columns: Columns) -> str:
        """Return a digest of the manifest of the model; loading verifies the files."""
        folder = Path(self.model).expanduser()
        try:
            files = manifest_of(folder).model_dump()["files"]
        except OSError:
            expected = f"the folder of a saved {self.parameter}"
            raise InputError(self.parameter, expected, str(self.model)) from None
        except ValueError as error:
            message = f"{folder / MANIFEST} is damaged ({error}); save it again"
            raise CorruptFileError(message) from None
        return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class AssignTopics(_OfSavedModel):
    """Topics, memberships and novelty of a saved model.

    Parameters
    ----------
    model : path
        Folder of a saved TopicModel.
    """

    name: ClassVar[str] = "assign"

    def load(self) -> Any:
        """Load the model; its encoder loads with the first text."""
        from embedtopics.topics._model import TopicModel

        return TopicModel.load(self.model)

    def table(self, model: Any, rows: ShardRows, columns: Columns) -> pa.Table:
        """Return the topic, the novelty and the topic shares of each row."""
        import pyarrow as pa

        assignment = model._assign(Corpus(rows.texts), rows.vectors)
        shares = assignment.memberships
        shares.sort_indices()
        offsets = pa.array(shares.indptr, pa.int32())
        return pa.table({
            **_keys(rows),
            "topic": pa.array(assignment.labels, pa.int32()),
            "novelty": pa.array(assignment.novelty, pa.float32()),
            "topics": pa.ListArray.from_arrays(offsets, pa.array(shares.indices, pa.int32())),
            "shares": pa.ListArray.from_arrays(offsets, pa.array(shares.data, pa.float32())),
        })  # fmt: skip


@dataclass(frozen=True)
class CountTopics(AssignTopics):
    """Counts of rows and terms by topic, period and group, which add up over shards.

    Parameters
    ----------
    model : path
        Folder of a saved TopicModel, whose terms are counted.
    every : str
        Length of a period, as in `over_time`. "auto" is refused: it would depend on the shard.
    """

    every: str = "month"
    name: ClassVar[str] = "count"

    def fingerprint(self, columns: Columns) -> str:
        """Return a digest of everything the counts depend on."""
        from embedtopics.topics.trends._over_time import parse_unit

        return f"{super().fingerprint(columns)} {parse_unit(self.every).name}"

    def table(self, model: Any, rows: ShardRows, columns: Columns) -> pa.Table:
        """Return the count of each topic, period, group and term; term -1 counts rows."""
        import pandas as pd
        import pyarrow as pa

        from embedtopics.terms._counts import sum_rows
        from embedtopics.terms._tokens import tokenize
        from embedtopics.topics.growing._extend import count_known_terms
        from embedtopics.topics.trends._over_time import period_names

        corpus = Corpus(rows.texts)
        labels = model._assign(corpus, rows.vectors).labels
        documents, with_text = corpus.distinct(), np.flatnonzero(corpus.status == TEXT)
        periods = "" if rows.times is None else period_names(rows.times.to_numpy(), self.every)
        cells = pd.DataFrame({"topic": labels, "period": periods, "group": rows.groups or ""})
        cells = cells.iloc[with_text]
        codes, kinds = pd.factorize(pd.MultiIndex.from_frame(cells))
        kinds = kinds.set_names(list(cells))
        tokens = tokenize(corpus.document_texts(), rules=model.result_.tokens.rules)
        counts = count_known_terms(model.result_, tokens)
        summed = sum_rows(counts, documents.of_row[with_text], codes, len(kinds)).tocoo()
        cell = np.concatenate([np.arange(len(kinds)), summed.row])
        table = kinds.to_frame(index=False).iloc[cell]
        table["term"] = np.concatenate([np.full(len(kinds), -1), summed.col])
        table["n"] = np.concatenate([np.bincount(codes, minlength=len(kinds)), summed.data])
        table = table.sort_values(["topic", "period", "group", "term"])
        types = {
            "topic": pa.int32(), "period": pa.string(), "group": pa.string(),
            "term": pa.int32(), "n": pa.int64(),
        }  # fmt: skip
        return pa.table({name: pa.array(table[name].tolist(), t) for name, t in types.items()})


@dataclass(frozen=True)
class ClassifyTexts(_OfSavedModel):
    """Classes and probabilities of a saved TextClassifier.

    Parameters
    ----------
    model : path
        Folder of a saved classifier.
    """

    name: ClassVar[str] = "classify"
    parameter: ClassVar[str] = "classifier"

    def load(self) -> Any:
        """Load the classifier."""
        from embedtopics.classification._classifier import TextClassifier

        return TextClassifier.load(self.model)

    def table(self, classifier: Any, rows: ShardRows, columns: Columns) -> pa.Table:
        """Return the label, its confidence and the probability of each class."""
        import pyarrow as pa

        from embedtopics.classification import classify

        table = classify(classifier, Corpus(rows.texts)).drop(columns=["row", "id"])
        classes = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
        for place, (name, column) in enumerate(_keys(rows).items()):
            classes = classes.add_column(place, name, column)
        return classes


Job = EmbedTexts | AssignTopics | CountTopics | ClassifyTexts


def _keys(rows: ShardRows) -> dict[str, Any]:
    import pyarrow as pa

    return {"row": pa.array(rows.numbers, pa.int64()), "id": pa.array(rows.ids, pa.string())}
