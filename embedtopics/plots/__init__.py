"""Figures of results: ``plots.f`` draws what the function ``f`` returned, as a Plotly figure.

Figures are never shown by the function, and nothing is computed here. Each takes `title`, `width`
and `height`, as in plotly.express.

Plotly is loaded when the first figure is drawn, not when this subpackage is imported.
``figure.write_image("map.svg")`` writes SVG, PDF or PNG, offline, with the extra ``figures`` and a
Chrome or Chromium.
"""

from embedtopics._utils.public import attach

MOVED = {
    "positions": "et.plots.shares",
    "prevalence": "et.plots.shares",
    "word_paths": "et.plots.word_map(uses, paths=True)",
}
"""Former public names, and what to use instead."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
