"""Pre-train an encoder further on texts without labels, and report the result."""

from __future__ import annotations

import math
import os
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.pretraining._blocks import (
    FEWEST_OF_PAIR,
    FEWEST_TOKENS,
    Blocks,
    Segments,
    cut_into_blocks,
)
from embedtopics.pretraining._masking import (
    MASKED_SHARE,
    RandomMasking,
    Replacements,
    masking_of,
)
from embedtopics.pretraining.results import TASK, PretrainingResult
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision
from embedtopics.training._compare import compare_before_after, corpus_texts, judge
from embedtopics.training._examples import Examples
from embedtopics.training._figures import Figure, compare_scores, ratio
from embedtopics.training._report import write_report
from embedtopics.training._rows import Change, frame_of
from embedtopics.training._settings import TrainingSettings, require_libraries, settings_of
from embedtopics.training.objectives._trainable import KIND, save_trainable, trainable_of
from embedtopics.training.results import TrainingReport
from embedtopics.training.trainer._checkpoints import (
    checkpoints_of,
    delete_checkpoints,
    output_folder,
)

if TYPE_CHECKING:
    from embedtopics.pretraining._masked_model import MaskedData, Scores
    from embedtopics.training.objectives._trainable import Trainable
    from embedtopics.training.trainer._running import Run

USUAL = {"learning_rate": 5e-5, "validations_per_epoch": 2.0}
"""Defaults that differ from those of `TrainingSettings`."""

HEAD: dict[str, Any] = {"learning_rate": 1e-3, "epochs": 1.0, "patience": None}
HEAD_STEPS = 500
"""Maximum number of steps of a new head on the frozen transformer."""

HELD_OUT, MOST_HELD_OUT, FEWEST_TEXTS = 0.1, 1000, 10
N_RESAMPLES = 2000
_NAMES = {
    "mlm": "masked language model",
    "mlm+nsp": "masked language model and next sentence",
    "mlm+sop": "masked language model and sentence order",
    "rtd": "replaced-token detection",
}


def pretrain(
    encoder: Any,
    corpus: Any,
    masking: Any = "random",
    *,
    objective: str = "mlm",
    out: str | os.PathLike[str] | None = None,
    masked_share: float = MASKED_SHARE,
    keep_geometry: bool | None = None,
    test: Any = None,
    general: Any = None,
    compare_on: Any = None,
    labels: Any = None,
    before: Any = None,
    settings: TrainingSettings | Mapping[str, Any] | None = None,
    resume: bool = True,
    overwrite: bool = False,
) -> PretrainingResult:
    """Pre-train an encoder further on a corpus without labels.

    A model learns the language of a field by predicting hidden tokens of its texts (Gururangan et
    al. 2020, "Don't stop pretraining"). This does not always improve the vectors: see the report,
    and `embedtopics.comparison.evaluate_encoders`. Texts longer than the model's limit are cut
    into blocks. A tenth of the texts, at most 1,000, is held out and chooses the weights.

    Parameters
    ----------
    encoder : str, path, SentenceEncoder or CachedEncoder
        A checkpoint of any family with masked language models; it is not changed. Sentence encoders
        have no head that predicts tokens. For them, a head tied to the embeddings is trained first,
        on the frozen transformer, in at most 500 steps.
    corpus : Corpus, or what `Corpus` takes
    masking : {"random", "whole_word", "span"} or SelectiveMasking
        Which tokens are predicted: tokens drawn one by one (Devlin et al. 2019); all pieces of
        words drawn one by one (Cui et al. 2021); spans of words, 3.8 words long on average (Joshi
        et al. 2020); or listed words first, as in ``SelectiveMasking(words)``. Masks are drawn at
        each step, from the `random_state` of the settings.
    objective : {"mlm", "mlm+nsp", "mlm+sop", "rtd"}
        Masked language modelling; with next sentence prediction, where half of the second segments
        come from other texts (Devlin et al. 2019); with sentence order prediction, where half of
        the pairs are swapped (Lan et al. 2020); or replaced-token detection: a small generator
        fills in hidden tokens, and the encoder finds the replaced ones (Clark et al. 2020).
        Segments are split at the end of a sentence near the middle of a block. Heads for pairs and
        replaced tokens are not saved; "rtd" saves no head.
    out : path, optional
        Folder for the encoder, its head, report and model card; during training,
        ``<out>.training`` holds checkpoints. By default a temporary folder.
    masked_share : float
        Share of the tokens that are predicted, at least one of each text; of whole words and spans
        it is the share of the words. The mask token replaces 80 % of these and another token 10 %;
        the rest stays. A `SelectiveMasking` has its own.
    keep_geometry : bool, optional
        Keep the vectors of texts near those of the encoder before training by a second loss, 1 -
        cosine on the unmasked texts of a batch, at twice the cost. By default for sentence
        encoders, whose vectors masked language modelling alone would spoil.
    test, general : Examples, or mapping of name to Examples, optional
        Examples that the encoder is scored on before and after, as by `training.fit`. Their texts
        should not be in the corpus.
    compare_on, labels : optional
        Texts on which neighbors and topics are compared, and their classes: the `corpus` and
        `labels` of `training.fit`.
    before : SentenceEncoder or str, optional
        What these compare with: by default `encoder`. Pass the encoder before words were added.
    settings : TrainingSettings or mapping, optional
        Such as ``{"epochs": 1}``; a batch holds blocks. A mapping that names no learning rate has
        5e-5, and two validations an epoch.
    resume : bool
        Continue from a checkpoint of the same run in ``<out>.training``, to the same weights.
    overwrite : bool
        Replace a finished encoder in `out`.

    Returns
    -------
    PretrainingResult

    Raises
    ------
    InputError
        If an option is bad, there are too few texts, or the tokenizer has no mask token.
    ModelLoadError
        If the checkpoint cannot be loaded.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb} here" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> settings = {"max_steps": 2, "device": "cpu", "show_progress": False}
    >>> result = et.pretraining.pretrain(
    ...     encoder, texts, "whole_word", out=f"{folder.name}/mine", settings=settings
    ... )
    >>> result.held_out.index.tolist(), result.report.n_steps
    (['loss', 'perplexity', 'accuracy'], 2)
    >>> folder.cleanup()
    """
    require_libraries()
    settings = settings_of(settings, USUAL)
    folder = check_output_folder(output_folder(out, "pretraining", overwrite, resume), KIND)
    checked_choice(objective, "objective", _NAMES)
    masking = masking_of(masking, masked_share)
    if compare_on is not None:
        corpus_texts(compare_on, labels)  # refused before the training, not after it
    prepared = _prepare(encoder, corpus, masking, settings, objective)
    if keep_geometry is None:
        keep_geometry = prepared.is_sentence_encoder
    run, scores = _learn(prepared, settings, folder, resume, keep_geometry)
    sets = {"test": test, "general": general, "corpus": compare_on, "labels": labels}
    adapted, changes = _saved(prepared, folder, scores, before, sets)
    learned = prepared.data.examples
    n_texts, n_held_out = (len(set(b.text_of.tolist())) for b in (learned, prepared.held))
    report = TrainingReport(
        objective=f"{prepared.data.objective.name}: {type(masking).__name__}",
        base=prepared.trainable.name,
        folder=str(folder),
        settings={**settings.to_dict(), "keep_geometry": keep_geometry},
        data={"n_train": n_texts, "n_validation": n_held_out,
              "train": prepared.source, "validation": "held out of these texts",
              "n_learned_from": len(learned), "n_tokens": int(learned.lengths.sum()),
              **masking.to_dict()},
        before_after=frame_of(changes, Change),
        versions=package_versions(),
        **vars(replace(run, decisions=(*prepared.trainable.decisions, *run.decisions))),
    )  # fmt: skip
    write_report(report, folder)
    for place in (folder, folder.with_name(f"{folder.name}.head")):
        delete_checkpoints(checkpoints_of(place))
    if out is None:  # the folder is deleted with the encoder that reads it
        weakref.finalize(adapted, shutil.rmtree, folder.parent, ignore_errors=True)
    return PretrainingResult(adapted, report)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A prepared run."""

    trainable: Trainable
    data: MaskedData
    held: Blocks
    source: str
    identity: Mapping[str, Any]
    is_sentence_encoder: bool


def _prepare(
    encoder: Any,
    corpus: Any,
    masking: RandomMasking,
    settings: TrainingSettings,
    objective: str,
) -> _Prepared:
    import torch

    from embedtopics.encoders.sentence._loading import load_vocabulary
    from embedtopics.pretraining._head import Detector, token_head
    from embedtopics.pretraining._masked_model import MaskedData
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.trainer._trainer import device_and_precision

    device, precision = device_and_precision(settings)
    read = as_corpus(corpus)
    require_text(read)
    texts = list(dict.fromkeys(read.document_texts()))
    trainable = trainable_of(encoder, settings)
    if trainable.is_static:
        raise InputError("encoder", "a transformer", found=f"the static encoder {trainable.name}")
    seed, recipe = settings.random_state, trainable.encoder.recipe  # type: ignore[union-attr]
    tokenizer = load_vocabulary(recipe.checkpoint, recipe.trusts_code).tokenizer
    mask_id, ordinary = _mask_and_ordinary(tokenizer, recipe.checkpoint.folder)
    max_length = trainable.max_length or recipe.max_length
    segments = Segments.of(objective, tokenizer, max_length)
    learned, validation_blocks = _cut(texts, tokenizer, max_length, segments, seed)
    of_blocks = tuple(texts[place] for place in learned.text_of.tolist())
    examples = Examples("texts", (of_blocks,), None, learned.text_of)
    inner = recipe.checkpoint.folder
    is_sentence_encoder = any((f / "modules.json").is_file() for f in (inner, inner.parent))
    body = trainable.model[0].model
    # Sentence encoders learn a new head first; from random weights all is learned at once.
    head: Any = (
        Detector(body, max_length, seed, is_sentence_encoder) if objective == "rtd"
        else token_head(recipe, body, seed, segments is not None)
    )  # fmt: skip
    data = MaskedData(
        trainable=replace(trainable, n_unpooled=0),  # blocks have no prompt
        objective=Objective(
            _NAMES[objective], examples, lambda *_: head, "accuracy", keeps_lowest_loss=True
        ),
        loss=head,
        examples=learned,
        masking=masking,
        replacements=Replacements.of(
            mask_id, ordinary, learned.tokens if objective == "rtd" else None
        ),
        seed=seed,
        segments=segments,
        autocast=partial(
            torch.autocast, torch.device(device).type,
            dtype=getattr(torch, precision if precision != "float32" else "bfloat16"),
            enabled=precision != "float32",
        ),
    )  # fmt: skip
    identity = {
        "encoder": trainable.fingerprint,
        "objective": {**masking.to_dict(), "kind": objective},
        "training examples": examples.fingerprint,
        "settings": settings.to_dict(),
    }
    return _Prepared(trainable, data, validation_blocks, read.source, identity, is_sentence_encoder)


def _cut(
    texts: list[str],
    tokenizer: Any,
    max_length: int,
    segments: Segments | None,
    seed: int,
) -> tuple[Blocks, Blocks]:
    """Return training and held-out blocks."""
    limit = max_length if segments is None else max(3, max_length - len(segments.separator))

    blocks = cut_into_blocks(texts, tokenizer, limit)
    blocks = blocks if segments is None else segments.usable(blocks)
    numbers = np.unique(blocks.text_of)
    n_held_out = min(MOST_HELD_OUT, math.ceil(HELD_OUT * len(numbers)))
    numbers_held_out = np.random.default_rng((seed, 3)).permutation(numbers)[:n_held_out]
    is_held = np.isin(blocks.text_of, numbers_held_out)  # texts with all their blocks
    learned, held_out = (blocks.take(np.flatnonzero(part)) for part in (~is_held, is_held))
    if len(learned) < FEWEST_TEXTS:
        least = FEWEST_TOKENS if segments is None else FEWEST_OF_PAIR
        expected = f"at least {FEWEST_TEXTS} texts of {least} tokens and more to learn from"
        raise InputError("corpus", expected, found=f"{len(learned)} of {len(texts):,}")
    return learned, held_out


def _mask_and_ordinary(tokenizer: Any, folder: Path) -> tuple[int, Int64Array]:
    """Return the mask token, and all ordinary tokens."""
    added = tokenizer.get_added_tokens_decoder()
    special = {number for number, token in added.items() if token.special}
    names = {added[number].content: number for number in special}
    mask = next((names[name] for name in ("[MASK]", "<mask>") if name in names), None)
    if mask is None:
        got = f"none among {', '.join(sorted(names)) or 'no special tokens'} ({folder})"
        raise InputError("encoder", "one whose tokenizer has a mask token", found=got)
    ordinary = sorted(set(tokenizer.get_vocab().values()) - special)
    return mask, np.array(ordinary, dtype=np.int64)


def _learn(
    prepared: _Prepared,
    settings: TrainingSettings,
    folder: Path,
    resume: bool,
    keep_geometry: bool,
) -> tuple[Run, tuple[dict[str, Scores], dict[str, Scores]]]:
    """Train a missing head, then all weights; score held-out tokens before and after."""
    from embedtopics.training.trainer._running import train

    data, held_out = prepared.data, prepared.held
    identity = {**prepared.identity, "keep_geometry": keep_geometry}
    encoder = data.batch_encoder(4096)
    geometry = _geometry(data) if keep_geometry else None
    decisions = []
    if data.loss.is_new:
        frozen = [weight for weight in data.model.parameters() if weight.requires_grad]
        data.model.requires_grad_(False)
        n_steps = settings.max_steps or math.ceil(
            len(data.examples) / settings.batch_size / settings.accumulation
        )
        head_settings = replace(settings, **HEAD, max_steps=min(HEAD_STEPS, n_steps))
        of_head = checkpoints_of(folder.with_name(f"{folder.name}.head"))
        run = train(
            data, held_out, head_settings, of_head, identity, resume  # type: ignore[arg-type]
        )  # fmt: skip
        for weight in frozen:
            weight.requires_grad_(True)
        first, last = run.curves.validation_loss[[0, -1]]
        text = (
            f"The checkpoint has no head that predicts tokens; one was learned in {run.n_steps:,} "
            f"steps on the frozen transformer (held-out loss {first:.2f} to {last:.2f})."
        )
        decisions = [Decision("training", "head_learned", run.n_steps, text)]
    before = data.scores(encoder, held_out)
    data = replace(data, geometry=geometry)
    run = train(data, held_out, settings, checkpoints_of(folder), identity, resume)  # type: ignore[arg-type]
    after = data.scores(encoder, held_out)
    return replace(run, decisions=(*decisions, *run.decisions)), (before, after)


def _geometry(data: MaskedData) -> FloatArray:
    """Encode the blocks with the encoder before training; vectors (n_blocks, n_dimensions)."""
    import torch

    from embedtopics.pretraining._masked_model import MEASURED_AT_ONCE
    from embedtopics.training.trainer._batching import BatchEncoder

    encoder = BatchEncoder(data.forward, MEASURED_AT_ONCE)
    data.model.eval()
    encoded = encoder.encode([tokens.ids.tolist() for tokens in data.examples.tokens])
    vectors: FloatArray = torch.nn.functional.normalize(encoded, dim=1).cpu().numpy()
    return vectors


def _saved(
    prepared: _Prepared,
    folder: Path,
    scores: tuple[dict[str, Scores], dict[str, Scores]],
    first: Any,
    sets: Mapping[str, Any],
) -> tuple[SentenceEncoder, tuple[Change, ...]]:
    """Write transformer and head, and compare the encoders."""
    trainable, head = prepared.trainable, prepared.data.loss
    trainable.model.to("cpu")
    head.to("cpu")
    save_trainable(trainable, folder, also=getattr(head, "save", None))
    before: Any = trainable.encoder
    read_as = {"precision": before.recipe.precision, "long_texts": before.recipe.long_texts}
    after = SentenceEncoder(folder, **read_as)
    changes = _changes(prepared.held, *scores)
    named = {name: value for name, value in sets.items() if value is not None}
    if named:
        changes += compare_before_after(before if first is None else first, after, **named)
    return after, changes


def _changes(
    held_out: Blocks, before: Mapping[str, Scores], after: Mapping[str, Scores]
) -> tuple[Change, ...]:
    """Compare predictions of the same hidden tokens, resampling texts."""
    changes = []
    for kind, first in before.items():
        last, n = after[kind], int(first.n_predicted.sum())
        note = f"Of {n:,} predictions; these texts also chose the step that was kept."
        ends = (-first.loss, -last.loss), (first.n_right, last.n_right)
        for measure, (start, end) in zip(("log-likelihood", "accuracy"), ends, strict=True):
            metric = f"{kind} {measure}"
            figure = Figure(metric, _per_token, start, end, first.n_predicted, held_out.text_of)
            effect = compare_scores(figure, N_RESAMPLES, 0)
            changes.append(judge(TASK, metric, effect, n, note).change)
    return tuple(changes)


def _per_token(scores: Any, truth: Any) -> Any:
    """Return the measure of the sum of scores over the sum of predictions."""
    return lambda counts: ratio(counts @ scores, counts @ truth)
