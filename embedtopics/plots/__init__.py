"""Figures of a result: pure functions that return a Plotly figure and never show it.

Plotly is loaded when the first figure is drawn, not when this subpackage is imported.
``figure.write_image("map.svg")`` writes SVG, PDF or PNG, offline, with the extra ``figures`` and a
Chrome or Chromium.
"""

from embedtopics._utils.public import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
