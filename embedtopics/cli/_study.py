"""The command ``run-plan``: a frozen plan over all its choices, with every departure marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show

if TYPE_CHECKING:
    from embedtopics.topics.results import PlanResult


def run_plan(
    plan: Annotated[Path, Argument(help="The plan, a TOML file; see the guide After the fit.")],
    out: Annotated[
        Path, Option(help="Folder; runs after the first one get folders of their own in it.")
    ] = Path("plan"),
) -> None:
    """Run a frozen plan: answer its question with all choices, and test its hypotheses."""
    from embedtopics.topics._plan import evaluate_plan, write_answers

    planned = evaluate_plan(plan, out)
    title = planned.record["plan"].get("title")
    show.write_results_folder(planned.result, planned.folder, title=title)
    write_answers(planned, plan)
    _draw_curve(planned)

    record = planned.record
    digest = record["plan_sha256"][:12]
    show.say(f"plan of {record['date']} (sha256 {digest}): {planned.specifications!r}")
    show.print_notes(f"departure from the plan: {departure}" for departure in planned.departures)
    for finding in planned.findings:
        show.say(f"\n{finding}")
    typer.echo(f"\nwritten to {show.printable(str(planned.folder))}")


def _draw_curve(planned: PlanResult) -> None:
    """Draw the curve of the first hypothesis, or without one of the first answer."""
    from embedtopics.plots import specifications as draw

    topic = None
    quantity = None
    if len(planned.hypotheses):
        first = planned.hypotheses.iloc[0]
        topic = int(first["topic"])
        quantity = str(first["quantity"])
    figure = draw(planned.specifications, topic=topic, quantity=quantity)
    figure.write_html(planned.folder / "curve.html")
