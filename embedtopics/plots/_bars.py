"""Bars of topics, of their terms and of keyness; dots of recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, dark, tint, topic_colors
from embedtopics.plots._theme import (
    GREY,
    HIDDEN,
    INK,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    base_layout,
    caption,
    checked_topics,
    cut,
    empty_figure,
    escape,
    hover,
    lined_axis,
    name_lines,
    note,
    panel_figure,
    panel_note,
    scatter,
    small,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from embedtopics.topics.results import TopicResult

_ROW = 30
_PANELS = 15
_BARS = 40
_HEAD = 52


def sizes(
    result: FittedTopics,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the number of rows of each topic as bars, largest first.

    The bars account for every row. Topics beyond the 40 largest share a line without a bar, which
    would dwarf the others; outliers and rows without text have a line each. If stability was
    measured, a topic's line shows its recurrence in replicates, and unstable topics are paler.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> figure = et.plots.sizes(model)
    >>> figure.layout.yaxis.ticktext[-1].strip()
    'No topic'
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    result = result_of(result)
    bars = _size_bars(result)
    names, lengths, colors, notes = (list(values) for values in zip(*bars, strict=True))
    trace: Spec = {"type": "bar", "orientation": "h", "x": lengths, "y": list(range(len(bars)))}
    trace |= {"marker": {"color": colors}, "text": notes, "textposition": "outside"}
    trace |= {"textfont": {"color": INK, "size": 12}, "cliponaxis": False, "hoverinfo": "skip"}
    right = 110 if result.stability is None else 190
    layout: Spec = {"bargap": 0.25, "xaxis": {**HIDDEN, "range": [0, max(lengths) or 1]}}
    layout |= {"yaxis": lined_axis(names)}
    layout |= base_layout(canvas, len(bars) * _ROW + 48, r=right, t=36, b=12)
    return go.Figure(data=[trace], layout=layout)


def _size_bars(result: TopicResult) -> list[tuple[str, int, str, str]]:
    """Return the name, length, colour and text of each bar from top to bottom."""
    of_row = result.distinct.of_row
    n_empty = int(np.sum(of_row < 0))
    n_text = len(of_row) - n_empty
    n_noise = int(np.sum(result.labels == NOISE)) - n_empty

    def counted(n_rows: int) -> str:
        return f"{n_rows:,} · {n_rows / n_text:.1%}" if n_text else f"{n_rows:,}"

    recurs = [""] * result.n_topics
    if result.stability is not None:
        values = result.stability.recurrence
        recurs = [" · in no replicate" if v != v else f" · recurs {v:.2f}" for v in values]
    bars = [
        (topic.name, topic.size, color, counted(topic.size) + recurs[topic.topic_id])
        for topic, color in zip(result.topics, topic_colors(result), strict=True)
    ][:_BARS]
    rest = result.topics[_BARS:]
    if rest:
        name = "1 smaller topic" if len(rest) == 1 else f"{len(rest):,} smaller topics"
        bars.append((name, 0, NOISE_COLOR, counted(sum(topic.size for topic in rest))))
    bars.append(("No topic", n_noise, NOISE_COLOR, counted(n_noise)))
    if n_empty:
        bars.append(("Without text", n_empty, NOISE_COLOR, f"{n_empty:,}"))
    return bars


def terms(
    result: FittedTopics,
    *,
    topics: int | str | Sequence[int | str] | None = None,
    n_terms: int = 8,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the keywords of each topic as bars of their weights, one panel per topic.

    The longest bar of a panel fills it: bars compare the terms of one topic, not two topics.
    Hovering shows the weights.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topics : int, str or sequence of them, optional
        Topics by id or name, in the order to draw; by default the 15 largest topics.
    n_terms : int
        Maximum number of terms of each topic.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace per topic, in the topics' colours.

    Raises
    ------
    InputError
        If a topic id is not in the result.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> figure = et.plots.terms(model, topics=[0, 1], n_terms=5)
    >>> len(figure.data), len(figure.data[0].x)
    (2, 5)
    """
    canvas = Canvas(title, width, height)
    result = result_of(result)
    largest = range(min(_PANELS, result.n_topics))
    labels = [topic.name for topic in result.topics]
    topic_ids = checked_topics(largest if topics is None else topics, labels)
    if not topic_ids:
        return empty_figure(canvas)

    colors = topic_colors(result)
    columns = min(len(topic_ids), 2)  # that fit into 420 pixels
    heights = [n_terms * (_ROW - 1)] * -(-len(topic_ids) // columns)
    margin = {"t": 36 + _HEAD, "b": 28}
    figure = panel_figure(
        canvas,
        heights,
        columns,
        n=len(topic_ids),
        between=_HEAD,
        gap=32,
        margin=margin,
    )

    notes = []
    for panel, topic_id in enumerate(topic_ids):
        topic = result.topics[topic_id]
        axes = axes_of(panel)
        best = list(zip(topic.keywords, topic.weights, strict=True))[:n_terms]
        best.sort(key=lambda term: -term[1])
        words, weights = zip(*best, strict=True) if best else ((), ())

        bars: Spec = {"x": list(weights), "y": list(range(len(weights))), "orientation": "h"}
        texts: Spec = {"hovertext": [caption(term, 60) for term in words]}
        texts["hovertemplate"] = "%{hovertext}: %{x:.3g}<extra></extra>"
        figure.add_bar(**bars, **axes, **texts, marker_color=tint(colors[topic_id], 0.45))

        span = [0, max(weights, default=0.0) or 1.0]
        figure.update_xaxes({**HIDDEN, "range": span}, selector={"anchor": axes["yaxis"]})

        about = f"topic {topic_id} · {topic.size:,} {'row' if topic.size == 1 else 'rows'}"
        notes.append(panel_note(figure, panel, heading(topic.name, about, columns), size=12))
        notes += _bar_texts(words, 30, xref=axes["xaxis"], yref=axes["yaxis"])

    figure.update_yaxes({**HIDDEN, "range": [n_terms - 0.5, -0.5]})
    n_others = 0 if topics is not None else result.n_topics - len(topic_ids)
    notes += left_out(n_others, -4)
    return figure.update_layout(bargap=0.18, annotations=notes)


def left_out(n_topics: int, yshift: int = -22) -> list[Spec]:
    """Return a note below a figure with the number of topics that it does not show."""
    if n_topics <= 0:
        return []
    place: Spec = {"across": "right", "up": "top", "size": 11, "color": MUTED}
    more = f"and {n_topics:,} smaller topic{'s' if n_topics > 1 else ''}"
    return [note(more, 1.0, 0.0, yshift=yshift, **place)]


def heading(name: str, about: str, columns: int) -> str:
    """Return a name, on two lines if the panel is narrow, above a smaller line of markup."""
    lines = [cut(name, 60)] if columns != 2 else name_lines(name, 24, 2)
    return f"<b>{'<br>'.join(map(escape, lines))}</b><br>{small(about)}"


def _bar_texts(terms: Sequence[str], length: int, **more: Any) -> list[Spec]:
    """Return terms as annotations over their bars, which a narrow panel does not cut."""
    place = {"x": 0, "xanchor": "left", "xshift": 6, **more}
    return [{**place, "y": i, "text": caption(term, length)} for i, term in enumerate(terms)]


_KEYNESS_COLORS = ("#7fb8d8", "#f0c67a")
"""Tints of the first two colours of the palette, pale enough for text."""

_KEY_TERMS = 15


def keyness(
    frame: pd.DataFrame,
    *,
    target: str = "target",
    reference: str = "reference",
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the key terms of the target to the right and those of the reference to the left.

    The strongest terms are on top, in the order of the frame. Hovering shows counts and rates.

    Parameters
    ----------
    frame : DataFrame
        From `embedtopics.topics.keyness`.
    target, reference : str
        Names of both sides.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace for each side, of at most 15 terms.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> is_press = model.result_.corpus.metadata["source"] == "press"
    >>> words = et.topics.keyness(model, is_press)
    >>> figure = et.plots.keyness(words, target="press", reference="others")
    >>> [bars.name for bars in figure.data]
    ['press', 'others']
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    if not {"term", "statistic", "effect"} <= set(getattr(frame, "columns", ())):
        expected = "the DataFrame of et.topics.keyness"
        raise InputError(
            "frame",
            expected,
            remedy="call et.topics.keyness(model, target) first",
            found=type(frame).__name__,
        )

    rows: list[Any] = list(frame.itertuples())
    positive = [row for row in rows if row.statistic > 0][:_KEY_TERMS]
    negative = [row for row in rows[::-1] if row.statistic < 0][:_KEY_TERMS]
    longest = max((abs(row.statistic) for row in positive + negative), default=1.0)
    n_lines = max(len(positive), len(negative), 1)
    traces, notes = [], []
    sides = ((target, positive, 1), (reference, negative, -1))
    for (name, side, sign), color in zip(sides, _KEYNESS_COLORS, strict=True):
        texts = [
            f"<b>{caption(str(row.term), 60)}</b><br>statistic {row.statistic:,.1f}, "
            f"effect {row.effect:.2f}<br>{row.count_target:,} and "
            f"{row.count_reference:,} occurrences<br>{row.rate_target:,.0f} and "
            f"{row.rate_reference:,.0f} per million"
            for row in side
        ]
        bars: Spec = {"type": "bar", "orientation": "h", "name": caption(name, 40)}
        bars |= {"x": [row.statistic for row in side], "y": list(range(len(side)))}
        traces.append({**bars, "marker": {"color": color}, **hover(texts)})
        anchor: Spec = {"xref": "x", "xanchor": "left" if sign > 0 else "right", "xshift": 8 * sign}
        above = {"x": 0, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 10, **anchor}
        none = "" if side else "<br>no term"
        notes.append({**above, "text": f"<b>{caption(name, 28)}</b>{none}"})
        notes += _bar_texts([str(row.term) for row in side], 32, yref="y", **anchor)
    middle = {"type": "line", "xref": "x", "yref": "paper", "x0": 0, "x1": 0, "y0": 0, "y1": 1}
    axis = {"range": [-longest, longest], "nticks": 7, "showgrid": True}
    layout = base_layout(canvas, n_lines * (_ROW - 1) + 116, r=16, t=68, b=48) | {
        "barmode": "overlay",
        "bargap": 0.18,
        "xaxis": {**axis, "title": "test statistic"},
        "yaxis": {**HIDDEN, "range": [n_lines - 0.5, -0.5]},
        "shapes": [{**middle, "line": {"color": MUTED, "width": 1}}],
        "annotations": notes,
    }
    return go.Figure(data=traces, layout=layout)


def stability(
    result: FittedTopics,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the recurrence of each topic with its interval and its chance level, stablest first.

    A dot is the mean overlap (Jaccard) of a topic with its best match in the replicates. The line
    through it holds nine tenths of the replicates, and the grey mark is the value of random
    labels. A topic whose line reaches its grey mark cannot be distinguished from chance.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
        With a measured stability.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        All topics, because the least stable ones matter most.

    Raises
    ------
    InputError
        If stability was not measured.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> measured = et.topics.with_stability(model, n_replicates=3)
    >>> figure = et.plots.stability(measured)
    >>> figure.layout.xaxis.title.text
    'overlap with the best match (Jaccard)'
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    result = result_of(result)
    measured = result.stability
    if not result.topics:
        return empty_figure(canvas)
    if measured is None:
        raise InputError(
            "result",
            "one with a measured stability",
            remedy="call et.topics.with_stability(result) first, and draw what it returns",
        )
    order = np.argsort(-np.nan_to_num(measured.recurrence, nan=-1.0), kind="stable").tolist()
    value, low, high = (v[order] for v in (measured.recurrence, measured.low, measured.high))
    shades = topic_colors(result)
    colors, rims = [shades[i] for i in order], [dark(shades[i]) for i in order]
    rows, names, texts = list(range(len(order))), [], []
    for row, topic in enumerate(order):
        label = result.topics[topic].name
        names.append(label + (" (in no replicate)" if np.isnan(value[row]) else ""))
        texts.append(
            f"{caption(label, 60)}<br>topic {topic} · {result.topics[topic].size:,} rows<br>"
            f"recurrence {value[row]:.2f}, nine in ten from {low[row]:.2f} to {high[row]:.2f}"
        )
    axis_title = "overlap with the best match (Jaccard)"
    ticks = {"range": [-0.02, 1.02], "tickvals": [0, 0.5, 1], "tickangle": 0, "showgrid": True}
    layout = base_layout(canvas, len(order) * _ROW + 108, t=64, b=44) | {"showlegend": True}
    figure = go.Figure(layout=layout | {"xaxis": {**ticks, "title": axis_title}})
    figure.update_yaxes(lined_axis(names))
    quiet: Spec = {"hoverinfo": "skip", "showlegend": False}
    for i in rows:
        line = {"color": rims[i], "width": 2}
        figure.add_trace(scatter([low[i], high[i]], [i, i], "lines", line=line, **quiet))
    if measured.chance is not None:
        mark = {"symbol": "line-ns-open", "size": 13, "color": GREY, "line": {"width": 2}}
        chance = scatter(measured.chance[order].tolist(), rows, name="chance level", marker=mark)
        figure.add_trace({**chance, "hovertemplate": "chance: %{x:.2f}<extra></extra>"})
    name = f"recurrence, mean of {measured.n_replicates} replicates (line: nine tenths of them)"
    marker = {"size": 11, "color": colors, "line": {"width": 1.5, "color": rims}}
    return figure.add_trace(scatter(value.tolist(), rows, name=name, marker=marker, **hover(texts)))
