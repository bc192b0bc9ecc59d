"""``embedtopics topics RESULTS --resolution``: the topics of a folder, coarser or finer."""

from __future__ import annotations

from pathlib import Path

from embedtopics.errors import InputError

__all__ = ["reread"]


def reread(
    results: Path,
    resolution: str,
    *,
    out: Path | None,
    coverage: float | str | None,
    replicates: int | None,
) -> None:
    """Read results at another resolution, print the topics, and write the folder.

    Parameters
    ----------
    results : Path
        Folder that ``topics`` wrote.
    resolution : str
        auto, fine, coarse or a number.
    out : Path or None
        None writes in place.
    coverage : float, str or None
        None keeps that of the results.
    replicates : int or None
        None measures the stability if it was measured before, with as many replicates.
    """
    from embedtopics.cli.display import make_console, print_topics
    from embedtopics.cli.results_folder import (
        check_results_folder,
        read_results_folder,
        write_results_folder,
    )
    from embedtopics.topics import at_resolution, with_stability

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    wanted = int(resolution) if resolution.isdecimal() else resolution
    if wanted not in ("auto", "fine", "coarse") and not isinstance(wanted, int):
        raise InputError(f"--resolution must be auto, fine, coarse or a number; got {resolution!r}")
    after = at_resolution(before, wanted, coverage=coverage)
    if replicates is None:
        replicates = 0 if before.stability is None else before.stability.n_replicates
    if replicates and after.topics:
        after = with_stability(after, replicates)
    write_results_folder(after, target)
    print_topics(console, after, names=True)
    stays = {"at_resolution", "update_terms"}  # how terms are chosen is kept
    by_hand = list(dict.fromkeys(e.name for e in before.history if e.name not in stays))
    if by_hand:
        console.print(
            f"\nnote: what was done by hand before ({', '.join(by_hand)}) was done to other "
            "topics; these are as the hierarchy has them, with names made of their terms",
            style="yellow",
        )
    console.print(f"\n{after.n_topics} topics cover {after.coverage:.0%} of the texts; written to "
                  f"{target}", soft_wrap=True)  # fmt: skip
