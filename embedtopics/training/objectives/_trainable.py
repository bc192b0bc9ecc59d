"""Make a trainable model from an encoder, and save it as an encoder."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import replacing_folder, write_manifest
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.sentence._checkpoint import Dense, Recipe, UnitLength
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.encoders.sentence._running import n_leading, tokenize
from embedtopics.encoders.sentence._torch import load_model, silent_transformers
from embedtopics.encoders.static._encoder import KIND as STATIC_KIND
from embedtopics.encoders.static._encoder import StaticEncoder, TokenReader
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training._settings import TrainingSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

_PROMPT = "training"
"""Name of a prompt that the checkpoint has no name for."""


def model_of(recipe: Recipe) -> SentenceTransformer:
    """Return a model of sentence-transformers with the weights and vectors of an encoder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    checkpoint = recipe.checkpoint
    if checkpoint.width is None:
        expected = "a checkpoint with its width in the configuration"
        raise InputError("encoder", expected, str(checkpoint.folder))

    modules: list[Any] = [_transformer(recipe)]
    pools_prompt = checkpoint.pools_prompt
    modules.append(Pooling(checkpoint.width, recipe.pooling, include_prompt=pools_prompt))
    modules += [_step(step) for step in recipe.steps]

    if recipe.dimensions is not None:
        sized = [module for module in modules if hasattr(module, "get_embedding_dimension")]
        modules.append(_cut(int(sized[-1].get_embedding_dimension()), recipe.dimensions))
    if recipe.normalize:
        modules.append(_step(UnitLength()))

    prompts = dict(checkpoint.prompts)
    name = None
    if recipe.prompt:
        name = next((key for key, words in prompts.items() if words == recipe.prompt), _PROMPT)
        prompts[name] = recipe.prompt

    with silent_transformers():
        model = SentenceTransformer(
            modules=modules,
            device="cpu",
            prompts=prompts,
            default_prompt_name=name,
            similarity_fn_name=checkpoint.similarity,
            trust_remote_code=recipe.trusts_code,
            local_files_only=True,
        )
    return model.eval()


def _transformer(recipe: Recipe) -> nn.Module:
    """Return the transformer with its tokenizer, its weights loaded as the encoder loads them."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Transformer

    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    local = {"local_files_only": not trusted, "trust_remote_code": trusted}
    # A pooler that the file lacks is drawn at random: it gives no vector, but is saved.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = load_model(checkpoint, trust_remote_code=trusted)
        with silent_transformers():
            module: nn.Module = Transformer(
                str(checkpoint.folder),
                model_kwargs={**local, "dtype": torch.float32, "use_safetensors": True},
                processor_kwargs=dict(local),
                config_kwargs=dict(local),
                modality_config={
                    "text": {"method": "forward", "method_output_name": "last_hidden_state"}
                },
                module_output_name="token_embeddings",
                max_seq_length=recipe.max_length,
                do_lower_case=checkpoint.lower_case,
            )
    module.model = model
    return module


def _step(step: Dense | UnitLength) -> nn.Module:
    import torch
    from sentence_transformers.sentence_transformer.modules import Normalize

    if isinstance(step, UnitLength):
        return Normalize()
    return _dense(torch.tensor(step.weight), torch.tensor(step.bias), step.activation)


def _dense(weight: Any, bias: Any, activation: str) -> nn.Module:
    """Return a dense layer; `weight` (n_out, n_in)."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense as DenseModule

    n_out, n_in = weight.shape
    options = {"init_weight": weight, "init_bias": bias, "bias": bias is not None}
    how = getattr(torch.nn, activation)()
    module: nn.Module = DenseModule(n_in, n_out, activation_function=how, **options)
    return module


def _cut(width: int, dimensions: int) -> nn.Module:
    """Return a module that truncates a vector before it is scaled."""
    import torch

    module = _dense(torch.eye(width)[:dimensions].clone(), None, "Identity")
    module.requires_grad_(False)
    return module


KIND = "trained encoder"
"""Kind of the folder that a trained transformer is saved to, as in its manifest."""

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Trainable:
    """A model that can be trained, with its tokenizer."""

    model: SentenceTransformer  # in float32 on the CPU
    encoder: SentenceEncoder | StaticEncoder  # that it was made from
    name: str  # of the encoder
    fingerprint: str  # of the encoder
    tokenize_texts: Callable[[Sequence[str]], list[list[int]]]
    pad_id: int
    n_unpooled: int  # tokens of a prompt at the beginning of every text that are not pooled
    max_length: int | None  # most tokens that training reads of a text
    is_static: bool  # whether the model is a table of token vectors
    decisions: tuple[Decision, ...] = ()  # what training does otherwise than the encoder

    @property
    def output_kind(self) -> str:
        """Kind of the folder that it is saved to."""
        return STATIC_KIND if self.is_static else KIND

    @property
    def n_dimensions(self) -> int:
        """Length of a vector."""
        return int(self.model.get_embedding_dimension() or 0)

    def features(self, ids: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return the input of the model, on its device."""
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


def transformer_of(encoder: Any) -> SentenceEncoder:
    """Return the transformer of an encoder, name or folder."""
    transformer: SentenceEncoder | None = resolve_exact(encoder).transformer
    if transformer is None:
        raise InputError("encoder", "a transformer: its name, folder or SentenceEncoder", encoder)
    return transformer


def trainable_of(encoder: Any, settings: TrainingSettings | None = None) -> Trainable:
    """Return a trainable model with the vectors of an encoder."""
    settings = settings or TrainingSettings()
    resolved = resolve_exact(encoder)
    if resolved.static is not None:
        return _static_trainable(resolved.static, settings)
    if resolved.transformer is not None:
        return _sentence_trainable(resolved.transformer, settings)
    raise InputError("encoder", "a SentenceEncoder or a StaticEncoder, or its name", encoder)


def save_trainable(
    trainable: Trainable,
    folder: str | os.PathLike[str],
    *,
    also: Callable[[Path], None] | None = None,
) -> None:
    """Write a model in the format of sentence-transformers.

    `also` writes further files before the folder takes its place.
    """
    path, model, encoder = Path(folder).expanduser(), trainable.model, trainable.encoder
    if encoder.static is not None:
        table: Any = model[0]
        encoder.static.with_table(table.embedding.weight.detach().cpu().numpy()).save(path)
        return
    with replacing_folder(path, KIND) as fresh:
        with silent_transformers():
            model.save(str(fresh), create_model_card=False)
        if also is not None:
            also(fresh)
        write_manifest(fresh, KIND, _FORMAT)


def _sentence_trainable(encoder: SentenceEncoder, settings: TrainingSettings) -> Trainable:
    recipe = encoder.recipe
    max_length = recipe.max_length if settings.max_seq_length is None else settings.max_seq_length
    limit = recipe.checkpoint.position_limit
    if settings.max_seq_length is not None and limit is not None and max_length > limit:
        expected = f"at most {limit}, all that this model can read"
        raise InputError("max_seq_length", expected, max_length)
    model = model_of(recipe)
    vocabulary = load_vocabulary(recipe.checkpoint, recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    tokenizer.enable_truncation(max_length)
    if len(tokenizer.encode(recipe.prompt).ids) >= max_length:
        expected = f"longer than the prompt {recipe.prompt[:60]!r}"
        raise InputError("max_seq_length", expected, max_length)

    def tokenize_texts(texts: Sequence[str]) -> list[list[int]]:
        options: dict[str, Any] = {"unknown_id": vocabulary.unknown_id, "prompt": recipe.prompt}
        read = tokenize(tokenizer, check_texts(texts), show_progress=False, **options)
        return [np.frombuffer(ids, dtype=np.int32).tolist() for ids in read.ids]

    pools_prompt = recipe.checkpoint.pools_prompt
    return Trainable(
        model=model,
        encoder=encoder,
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        tokenize_texts=tokenize_texts,
        pad_id=vocabulary.pad_id,
        n_unpooled=0 if pools_prompt else n_leading(tokenizer, recipe.prompt),
        max_length=max_length,
        is_static=False,
        decisions=(*_shorter(max_length, recipe.max_length), *_differences(recipe)),
    )


def _shorter(read: int | None, encoder_reads: int | None) -> tuple[Decision, ...]:
    if read == encoder_reads:
        return ()
    all_of_it = "whole texts" if encoder_reads is None else f"{encoder_reads} tokens"
    message = f"Training read at most {read} tokens of a text; the trained encoder reads "
    return (Decision("training", "max_length", read, f"{message}{all_of_it}."),)


def _differences(recipe: Recipe) -> Iterator[Decision]:
    """Report settings of the encoder that training does not use."""
    if recipe.precision != "float32":
        text = f"The encoder computes with {recipe.precision}; its float32 weights were trained."
        yield Decision("training", "precision", recipe.precision, text)
    if recipe.long_texts == "chunk":
        text = 'Training read the beginning of long texts; read the folder with long_texts="chunk".'
        yield Decision("training", "long_texts", "truncate", text)
    if recipe.dimensions is not None:
        text = f"Vectors are cut to {recipe.dimensions} dimensions by a layer that is not learned."
        yield Decision("training", "dimensions", recipe.dimensions, text)


def _static_trainable(encoder: StaticEncoder, settings: TrainingSettings) -> Trainable:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(encoder.tokenizer_json)
    length = settings.max_seq_length
    if length is None:
        length = encoder.max_seq_length
    reader = TokenReader(tokenizer, length)
    cutting = Tokenizer.from_str(tokenizer.to_str())
    if encoder.max_seq_length is not None:
        cutting.enable_truncation(encoder.max_seq_length)  # sentence-transformers leaves it to this
    module = StaticEmbedding(cutting, torch.tensor(encoder.table))
    if reader.unknown_id >= 0:
        module.embedding.padding_idx = reader.unknown_id  # left out of the mean, as in the encoder
    with silent_transformers():
        model = SentenceTransformer(
            modules=[module, *([Normalize()] if encoder.normalize else [])],
            device="cpu",
            local_files_only=True,
        )

    def tokenize_texts(texts: Sequence[str]) -> list[list[int]]:
        tokens = reader.read(check_texts(texts)).tokens
        ends = tokens.indptr.tolist()
        return [tokens.indices[a:b].tolist() for a, b in itertools.pairwise(ends)]

    return Trainable(
        model=model.eval(),
        encoder=encoder,
        name=encoder.name,
        fingerprint=encoder.fingerprint,
        tokenize_texts=tokenize_texts,
        pad_id=0,
        n_unpooled=0,
        max_length=length,
        is_static=True,
        decisions=_shorter(length, encoder.max_seq_length),
    )


def layers_of(transformer: nn.Module) -> nn.ModuleList:
    """Return the list of a transformer's layers."""
    from torch import nn

    config: Any = transformer.config
    depth = config.num_hidden_layers
    shared = getattr(config, "num_hidden_groups", None)  # ALBERT runs one layer many times
    for part in transformer.modules():
        if isinstance(part, nn.ModuleList) and len(part) == (shared or depth):
            return part
    got = type(transformer).__name__
    raise InputError("encoder", f"a transformer with a list of its {depth} layers", found=got)
