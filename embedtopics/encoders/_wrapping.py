"""An encoder as a model of sentence-transformers, for libraries that ask for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import require
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def to_sentence_transformer(encoder: Any) -> SentenceTransformer:
    """Return a model of sentence-transformers whose vectors an encoder of this package computes.

    BERTopic, KeyBERT, mteb and others accept no other class. The model encodes, at the speed of
    the encoder; it cannot be trained.

    Parameters
    ----------
    encoder : str, path or Encoder
        One of dense vectors that has been fitted.

    Returns
    -------
    SentenceTransformer

    Examples
    --------
    >>> import embedtopics as et
    >>> encoder = et.encoders.RandomProjectionEncoder(32)
    >>> model = et.encoders.to_sentence_transformer(encoder)
    >>> model.encode(["Cats purr.", "Dogs bark."]).shape
    (2, 32)
    """
    library = require("sentence_transformers", "a model of sentence-transformers", "train")
    import torch
    from sentence_transformers.base.modules import InputModule

    resolved = resolve_encoder(encoder)
    transformer = resolved.transformer
    width: int | None = resolved.dimensions if resolved.is_fitted else None
    if width is None:
        raise InputError("encoder", "a fitted encoder that states its dimensions", encoder)

    class EncodingModule(InputModule):  # type: ignore[misc]
        """Texts in, vectors out."""

        save_in_root = False
        max_seq_length = resolved.max_seq_length
        tokenizer = None if transformer is None else transformer.tokenizer

        def preprocess(
            self, inputs: Sequence[str], prompt: str | None = None, **_: Any
        ) -> dict[str, Any]:
            return {"texts": list(inputs), "prompt": prompt or ""}

        def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
            texts = features["texts"]
            prompt = features["prompt"]
            if prompt and transformer is not None:
                vectors = transformer.encode(texts, prompt=prompt, show_progress=False)
            else:
                prompted = [prompt + text for text in texts]
                vectors = resolved.encode(prompted, show_progress=False)
            return {**features, "sentence_embedding": torch.from_numpy(vectors)}

        def get_embedding_dimension(self) -> int | None:
            return width

        def save(self, output_path: str, **_: Any) -> None:
            raise InputError("encoder", "saved by its own method, encoder.save(folder)")

    card = library.SentenceTransformerModelCardData(model_name=resolved.name)
    # mteb stores scores by name and revision: an encoder trained again must not get the old ones.
    card.base_model_revision = resolved.fingerprint and resolved.fingerprint[:40]
    model: SentenceTransformer = library.SentenceTransformer(
        modules=[EncodingModule()],
        device="cpu",
        prompts=resolved.prompts,
        similarity_fn_name=resolved.similarity_fn_name,
        model_card_data=card,
    )
    return model
