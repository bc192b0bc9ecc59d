"""From an encoder to a model that can be trained, and from a trained model to a folder."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._files import replacing_folder, write_manifest
from embedtopics.encoders.cached import CachedEncoder
from embedtopics.encoders.choosing import resolve_encoder
from embedtopics.encoders.loading import load_vocabulary, silent_transformers
from embedtopics.encoders.recipe import Recipe
from embedtopics.encoders.static import StaticEncoder
from embedtopics.encoders.static_files import KIND as STATIC_KIND
from embedtopics.encoders.token_bags import bag_tokens, characters_read, unknown_token
from embedtopics.encoders.tokenizing import check_texts, n_leading, tokenize
from embedtopics.encoders.transformer import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.objectives.modules import model_of
from embedtopics.training.settings import TrainingSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

__all__ = ["KIND", "Trainee", "merge_adapters", "output_kind", "save_trainee", "trainee_of"]

KIND = "trained encoder"
"""Kind of the folder that a trained transformer is saved to, as in its manifest."""

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Trainee:
    """A model that can be trained, with what else is needed to train it.

    Parameters
    ----------
    model : SentenceTransformer
        In float32 on the CPU; training changes its weights.
    encoder : SentenceEncoder or StaticEncoder
        That it was made from.
    name, fingerprint : str
        Of the encoder.
    tokenise : callable
        ``tokenise(texts)`` returns a list of token ids for each text: cut at `max_length`, with
        prompt and special tokens; for a static encoder, known tokens alone.
    pad_id : int
    n_unpooled : int
        Tokens of a prompt at the beginning of every text that are not pooled.
    max_length : int or None
        Most tokens that training reads of a text; None for all. What the model itself reads, and
        the folder that it is saved to, is what the encoder read.
    is_static : bool
        Whether the model is a table of token vectors.
    decisions : tuple of Decision
        What training does otherwise than the encoder.
    """

    model: SentenceTransformer
    encoder: SentenceEncoder | StaticEncoder
    name: str
    fingerprint: str
    tokenise: Callable[[Sequence[str]], list[list[int]]]
    pad_id: int
    n_unpooled: int
    max_length: int | None
    is_static: bool
    decisions: tuple[Decision, ...] = ()

    @property
    def n_dimensions(self) -> int:
        """Length of a vector."""
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def has_adapters(self) -> bool:
        """Whether low-rank additions to the weights are learned."""
        return any(hasattr(part, "lora_A") for part in self.model.modules())

    def features(self, ids: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return what the model takes, on the device of the model.

        Parameters
        ----------
        ids : sequence of sequence of int
            Token ids of each text.

        Returns
        -------
        dict
            "input_ids" and "attention_mask" of shape (n_texts, n_tokens), padded at the end, and
            perhaps "prompt_length"; for a static encoder all ids in a row, and "offsets".
        """
        import torch

        device = self.model.device
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        flat = torch.tensor([token for row in ids for token in row], dtype=torch.long)
        if self.is_static:
            starts = torch.from_numpy(np.cumsum(lengths) - lengths)
            return {"input_ids": flat.to(device), "offsets": starts.to(device)}
        width = max(1, int(lengths.max(initial=0)))
        is_text = torch.arange(width) < torch.from_numpy(lengths)[:, None]
        padded = torch.full((len(ids), width), self.pad_id, dtype=torch.long)
        padded[is_text] = flat
        features: dict[str, Any] = {
            "input_ids": padded.to(device),
            "attention_mask": is_text.long().to(device),
        }
        if self.n_unpooled:
            features["prompt_length"] = self.n_unpooled
        return features


def trainee_of(encoder: Any, settings: TrainingSettings | None = None) -> Trainee:
    """Return a model that can be trained, whose vectors are those of an encoder.

    Parameters
    ----------
    encoder : str, path, SentenceEncoder, StaticEncoder, CachedEncoder or Trainee
        A checkpoint of whatever kind `SentenceEncoder` reads, or a static encoder. A Trainee, as
        of `fewer_layers`, is returned as it is.
    settings : TrainingSettings, optional
        Its `max_length` alone counts here.

    Returns
    -------
    Trainee

    Raises
    ------
    InputError
        If it is an encoder without weights that gradients could change, or `max_length` is more
        than it can read, or leaves no token to the text.
    ModelLoadError
        If its checkpoint cannot be loaded.
    """
    settings = settings or TrainingSettings()
    if isinstance(encoder, Trainee):
        return encoder
    found: Any = resolve_encoder(encoder)
    while isinstance(found, CachedEncoder):
        found = found.uncached
    if isinstance(found, StaticEncoder):
        return _static_trainee(found, settings)
    if isinstance(found, SentenceEncoder):
        return _sentence_trainee(found, settings)
    raise InputError(
        f"expected an encoder with weights that can be learned, got a {type(found).__name__}, "
        "whose vectors are not computed by layers that gradients go through; give a "
        "SentenceEncoder or a StaticEncoder, such as the name of a checkpoint"
    )


def save_trainee(
    trainee: Trainee, folder: str | os.PathLike[str], *, matryoshka: Sequence[int] = ()
) -> None:
    """Write a model as a folder that `SentenceEncoder` or `StaticEncoder` reads.

    sentence-transformers reads it, too. All of it is safetensors and JSON; the folder takes its
    place as a whole or not at all. Low-rank additions are added to the weights in what is written.

    Parameters
    ----------
    trainee : Trainee
    folder : path
        May be missing, empty, or hold what was saved there before.
    matryoshka : sequence of int
        Lengths at which the vectors learned as well; kept with the model, under "embedtopics" in
        its configuration, as "matryoshka_dims".

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    path = Path(folder).expanduser()
    if isinstance(trainee.encoder, StaticEncoder):
        _trained_static(trainee.model, trainee.encoder, matryoshka).save(path)
        return
    model = trainee.model
    if trainee.has_adapters:
        model = copy.deepcopy(model)  # training may go on
        merge_adapters(model)
    with replacing_folder(path, KIND) as fresh:
        with silent_transformers():
            model.save(str(fresh), create_model_card=False)
        if matryoshka:
            file = fresh / "config_sentence_transformers.json"
            config = json.loads(file.read_text("utf-8"))
            config["embedtopics"] = {"matryoshka_dims": list(matryoshka)}
            file.write_text(json.dumps(config, indent=2, sort_keys=True), "utf-8")
        write_manifest(fresh, KIND, _FORMAT)


def output_kind(trainee: Trainee) -> str:
    """Return the kind of folder that a trainee is saved to."""
    return STATIC_KIND if trainee.is_static else KIND


def merge_adapters(model: SentenceTransformer) -> None:
    """Add low-rank additions to the weights of a model, and take them out of it."""
    for name, part in list(model.named_modules()):
        if not hasattr(part, "lora_A"):
            continue
        adapter: Any = part
        adapter.merge(safe_merge=True)
        parent, _, key = name.rpartition(".")
        setattr(model.get_submodule(parent), key, adapter.get_base_layer())


def _trained_static(
    model: SentenceTransformer, encoder: StaticEncoder, matryoshka: Sequence[int]
) -> StaticEncoder:
    module: Any = model[0]
    table = module.embedding.weight.detach().cpu().numpy()
    if not matryoshka:
        return encoder.with_table(table)
    return StaticEncoder.from_arrays(
        table,
        encoder.tokenizer_json,
        normalize=encoder.normalize,
        max_length=encoder.max_length,
        name=encoder.name,
        languages=encoder.languages,
        made_from={**encoder.made_from, "matryoshka_dims": list(matryoshka)},
    )


def _sentence_trainee(encoder: SentenceEncoder, settings: TrainingSettings) -> Trainee:
    recipe = encoder.recipe
    max_length = _checked_length(settings.max_length, recipe)
    model = model_of(recipe)
    vocabulary = load_vocabulary(recipe.checkpoint, recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    tokenizer.enable_truncation(max_length)
    if len(tokenizer.encode(recipe.prompt).ids) >= max_length:
        taken = f"the prompt {recipe.prompt[:60]!r}" if recipe.prompt else "the special tokens"
        shorter = "a shorter one or " if recipe.prompt else ""
        raise InputError(
            f"expected a max_length that leaves some tokens to the text, got {max_length}, which "
            f"{taken} fill; give {shorter}a larger max_length"
        )
    pools_prompt = recipe.checkpoint.head.pools_prompt
    return Trainee(
        model=model,
        encoder=encoder,
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        tokenise=_transformer_tokens(tokenizer, vocabulary.unknown_id, recipe.prompt),
        pad_id=vocabulary.pad_id,
        n_unpooled=0 if pools_prompt else n_leading(tokenizer, recipe.prompt),
        max_length=max_length,
        is_static=False,
        decisions=(*_shorter(max_length, recipe.max_length), *_differences(recipe)),
    )


def _checked_length(wanted: int | None, recipe: Recipe) -> int:
    limit = recipe.checkpoint.position_limit
    if wanted is not None and limit is not None and wanted > limit:
        raise InputError(
            f"expected max_length to be at most {limit}, all that this model can read, got "
            f"{wanted}; give a smaller one or choose a model for longer texts"
        )
    return recipe.max_length if wanted is None else wanted


def _shorter(read: int | None, encoder_reads: int | None) -> tuple[Decision, ...]:
    if read == encoder_reads:
        return ()
    all_of_it = "all of it" if encoder_reads is None else f"{encoder_reads} tokens"
    message = f"Training read at most {read} tokens of a text; the encoder goes on to read "
    return (Decision("training", "max_length", read, f"{message}{all_of_it}."),)


def _transformer_tokens(
    tokenizer: Tokenizer, unknown_id: int, prompt: str
) -> Callable[[Sequence[str]], list[list[int]]]:
    def tokenise(texts: Sequence[str]) -> list[list[int]]:
        read = tokenize(
            tokenizer, check_texts(texts), unknown_id=unknown_id, prompt=prompt, show_progress=False
        )
        return [np.frombuffer(ids, dtype=np.int32).tolist() for ids in read.ids]

    return tokenise


def _differences(recipe: Recipe) -> list[Decision]:
    """Say what the encoder does and training does not."""
    found: dict[str, tuple[Any, str]] = {}
    if recipe.precision != "float32":
        message = f"The encoder computes with {recipe.precision}; its float32 weights were trained."
        found["precision"] = recipe.precision, message
    if recipe.long_texts == "chunk":
        message = (
            "The encoder reads long texts in windows; training read the beginning of each. A "
            'folder does not keep this: read it with long_texts="chunk".'
        )
        found["long_texts"] = "truncate", message
    if recipe.dimensions is not None:
        message = (
            f"The encoder keeps the first {recipe.dimensions} numbers of a vector; so does the "
            "trained one, by a layer of its own that is not learned."
        )
        found["dimensions"] = recipe.dimensions, message
    if recipe.layers != 1:
        message = "The encoder takes the mean of several layers; their weights were not learned."
        found["layers"] = str(recipe.layers), message
    return [Decision("training", name, value, words) for name, (value, words) in found.items()]


def _static_trainee(encoder: StaticEncoder, settings: TrainingSettings) -> Trainee:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(encoder.tokenizer_json)
    length = encoder.max_length if settings.max_length is None else settings.max_length
    table = encoder.table if encoder.weights is None else encoder.table * encoder.weights[:, None]
    unknown_id = unknown_token(tokenizer)
    module = StaticEmbedding(_cutting(tokenizer, encoder.max_length), torch.tensor(table))
    if unknown_id >= 0:
        module.embedding.padding_idx = unknown_id  # left out of the mean, as in the encoder
    with silent_transformers():
        model = SentenceTransformer(
            modules=[module, *([Normalize()] if encoder.normalize else [])],
            device="cpu",
            local_files_only=True,
        )
    most_characters = characters_read(tokenizer, length)

    def tokenise(texts: Sequence[str]) -> list[list[int]]:
        bags = bag_tokens(
            tokenizer, check_texts(texts), unknown_id=unknown_id, max_length=length,
            max_characters=most_characters,
        )  # fmt: skip
        ends = bags.offsets.tolist()
        return [bags.ids[a:b].tolist() for a, b in itertools.pairwise(ends)]

    return Trainee(
        model=model.eval(),
        encoder=encoder,
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        tokenise=tokenise,
        pad_id=0,
        n_unpooled=0,
        max_length=length,
        is_static=True,
        decisions=_shorter(length, encoder.max_length),
    )


def _cutting(tokenizer: Tokenizer, max_length: int | None) -> Tokenizer:
    """Return a copy that cuts by itself: sentence-transformers leaves it to the tokenizer."""
    from tokenizers import Tokenizer as Copied

    copied = Copied.from_str(tokenizer.to_str())
    if max_length is not None:
        copied.enable_truncation(max_length)
    return copied
