"""Checkpoints of a training run, from which it resumes to the same weights.

A checkpoint is a folder of safetensors and JSON, written whole or not at all::

    <out>.training/run.json            identity of the run
    <out>.training/best-00000090/      best weights so far
        weights.safetensors
        manifest.json
    <out>.training/step-00000120/
        weights.safetensors            of the model and the loss
        optimizer.safetensors          moments of every weight
        trainer_state.json             of the trainer
        state.json                     curves so far, learning rate schedule, best step
        manifest.json                  sizes and checksums

Dropout is drawn from the seed and the step, batches from the seed and the epoch, so checkpoints
hold no states of random generators.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import excerpt
from embedtopics._utils.folders import (
    is_kind,
    read_manifest,
    read_regular,
    replacing_file,
    replacing_folder,
    write_manifest,
)
from embedtopics._utils.records import parse_record, read_record
from embedtopics.errors import CorruptFileError, InputError, Remedy
from embedtopics.training.trainer._records import RunRecord, StateRecord, TrainerStateRecord

if TYPE_CHECKING:
    import torch

KIND = "training checkpoint"
FORMAT = 1
RUN, STATE, TRAINER_STATE = "run.json", "state.json", "trainer_state.json"
LONGEST_DAMAGE = 900
"""Characters of the damage of a checkpoint, which begins with the path of a file."""

KEPT = 2
"""Newest checkpoints that are kept: a power failure could damage the last."""


def checkpoints_of(folder: Path) -> Path:
    """Return the folder of the checkpoints of a run."""
    return folder.with_name(f"{folder.name}.training")


def output_folder(
    out: str | os.PathLike[str] | None, what: str, overwrite: bool = False, resume: bool = False
) -> Path:
    """Return the folder for an encoder; by default a temporary one."""
    if out is None:
        return Path(tempfile.mkdtemp(prefix=f"embedtopics-{what}-")) / "encoder"
    refuse_finished(out, overwrite, resume)
    return Path(out).expanduser()


def refuse_finished(out: str | os.PathLike[str], overwrite: bool, resume: bool = False) -> None:
    """Refuse a folder with a finished encoder, unless an interrupted run resumes into it."""
    from embedtopics.encoders.static._encoder import KIND as STATIC
    from embedtopics.training.objectives._trainable import KIND as TRAINED

    folder = Path(out).expanduser()
    goes_on = resume and (checkpoints_of(folder) / RUN).exists()
    if not overwrite and not goes_on and (is_kind(folder, STATIC) or is_kind(folder, TRAINED)):
        got = f"{folder}, which holds a finished encoder"
        remedy = Remedy("overwrite", True, "name another folder")
        raise InputError("out", "a new folder", found=got, remedy=remedy)


def claim_folder(folder: Path, run: Mapping[str, Any], resume: bool) -> None:
    """Create the folder of the checkpoints, and refuse checkpoints of another run."""
    try:
        if folder.is_dir() and not resume:
            delete_checkpoints(folder)
        folder.mkdir(parents=True, exist_ok=True)
        named = folder / RUN
        if named.exists():
            other = parse_record(RunRecord, read_regular(named)).values()
            different = sorted(
                key
                for key in {*other, *run}
                if other.get(key) != json.loads(json.dumps(run.get(key)))
            )
            if different:
                got = f"checkpoints of a run with another {different[0]} in {folder}"
                remedy = Remedy("resume", False)
                raise InputError("out", "another folder", found=got, remedy=remedy)
        else:
            with replacing_file(named) as fresh:
                fresh.write_text(json.dumps(run, indent=1), "utf-8")
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        got = f"a damaged {RUN} in {folder} ({error})"
        remedy = Remedy("resume", False)
        raise InputError("out", "another folder", found=got, remedy=remedy) from None
    except OSError as error:
        got = f"{folder}, which cannot be used ({error})"
        raise InputError("out", "another folder", found=got) from None


def write_checkpoint(
    folder: Path,
    step: int,
    weights: Mapping[str, torch.Tensor],
    moments: Mapping[str, torch.Tensor],
    state: Mapping[str, Any],
    trainer_state: str,
) -> Path:
    """Write a checkpoint, and delete old ones with their best weights."""
    tensors = {"weights": weights, "optimizer": moments}
    contents = {TRAINER_STATE: trainer_state, STATE: json.dumps(state)}
    place = _write(folder / f"step-{step:08d}", tensors, contents)
    steps = _of_steps(folder, "step")
    needed = {_best_of(place) for place in steps[-KEPT:]}
    unneeded = [best for best in _of_steps(folder, "best") if best not in needed]
    for old in [*steps[:-KEPT], *unneeded]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def write_best(folder: Path, step: int, weights: Mapping[str, torch.Tensor]) -> None:
    """Write the best weights so far; earlier checkpoints still need the earlier ones."""
    _write(folder / f"best-{step:08d}", {"weights": weights}, {})


def _write(
    place: Path, tensors: Mapping[str, Mapping[str, torch.Tensor]], contents: Mapping[str, str]
) -> Path:
    from safetensors.torch import save_file

    try:
        with replacing_folder(place, KIND) as fresh:
            for name, weights in tensors.items():
                # Copies, which share no memory: safetensors asks for that.
                plain = {key: tensor.detach().to("cpu").clone() for key, tensor in weights.items()}
                save_file(plain, fresh / f"{name}.safetensors")
            for name, content in contents.items():
                (fresh / name).write_text(content, "utf-8")
            write_manifest(fresh, KIND, FORMAT)
    except InputError as error:
        raise OSError(str(error)) from error
    return place


def read_best(folder: Path, step: int) -> dict[str, torch.Tensor]:
    """Return the best weights, those of a step."""
    return read_tensors(folder / f"best-{step:08d}", "weights")


def _of_steps(folder: Path, kind: str) -> list[Path]:
    return sorted(place for place in folder.glob(f"{kind}-*") if place.is_dir())


def _best_of(place: Path) -> Path | None:
    try:
        return _best_place(place, read_state(place))
    except OSError:
        return None


def _best_place(place: Path, state: StateRecord) -> Path:
    """Return the folder of the best weights of a checkpoint."""
    return place.parent / f"best-{state.best_step:08d}"


def latest_checkpoint(
    folder: Path, n_steps: int | None = None
) -> tuple[Path | None, dict[str, str]]:
    """Return the newest whole checkpoint, and the damage of each newer one by its name.

    A checkpoint after more than the `n_steps` planned steps is damaged too.
    """
    damaged: dict[str, str] = {}
    for place in reversed(_of_steps(folder, "step")):
        try:
            read_manifest(place, KIND, FORMAT)
            state = read_state(place)
            _check_steps(place, state, n_steps)
            read_manifest(_best_place(place, state), KIND, FORMAT)
        except (OSError, InputError) as error:
            damaged[place.name] = excerpt(str(error), LONGEST_DAMAGE)
            continue
        return place, damaged
    return None, damaged


def read_state(place: Path) -> StateRecord:
    """Return the `state` of `write_checkpoint`; a CorruptFileError names what is wrong with it."""
    file = place / STATE
    return read_record(StateRecord, read_regular(file), file)


def _check_steps(place: Path, state: StateRecord, n_steps: int | None) -> None:
    """Refuse a checkpoint whose folder, state and trainer are not after the same step."""
    file = place / TRAINER_STATE
    trainer = read_record(TrainerStateRecord, read_regular(file), file)
    if place.name != f"step-{state.step:08d}":
        raise CorruptFileError(f"{place / STATE} is damaged: step: it is {state.step}")
    if trainer.global_step != state.step:
        found = f"global_step: it is {trainer.global_step} after step {state.step}"
        raise CorruptFileError(f"{file} is damaged: {found}")
    if n_steps is not None and state.step > n_steps:
        found = f"step: it is {state.step} of {n_steps}"
        raise CorruptFileError(f"{place / STATE} is damaged: {found}")


def read_tensors(place: Path, name: str) -> dict[str, torch.Tensor]:
    """Return the tensors of "weights" or "optimizer"."""
    from safetensors.torch import load_file

    tensors: dict[str, torch.Tensor] = load_file(place / f"{name}.safetensors")
    return tensors


def delete_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of a run, and their folder if it is empty."""
    for kind in ("step", "best"):
        # A process that was killed while writing leaves a hidden folder.
        for place in [*_of_steps(folder, kind), *folder.glob(f".{kind}-*")]:
            shutil.rmtree(place, ignore_errors=True)
    for place in folder.glob(".writing-*"):
        shutil.rmtree(place, ignore_errors=True)
    (folder / RUN).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        return


EXIT_CODE = 128 + signal.SIGTERM
"""Exit code of a run that received SIGTERM, which schedulers send before they kill."""


@contextmanager
def noticed_termination() -> Iterator[threading.Event]:
    """Note a SIGTERM (in the main thread only), so that a run can write a checkpoint."""
    request = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: Any) -> None:
        request.set()

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield request
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
