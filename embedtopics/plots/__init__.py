"""Figures of a result: pure functions that return a Plotly figure and never show it.

Plotly is loaded when the first figure is drawn, not when this subpackage is imported.
``figure.write_image("map.svg")`` writes SVG, PDF or PNG, offline, with the extra ``figures`` and a
Chrome or Chromium.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.plots._attention import attention as attention
    from embedtopics.plots._bars import keyness as keyness
    from embedtopics.plots._bars import resolutions as resolutions
    from embedtopics.plots._bars import sizes as sizes
    from embedtopics.plots._bars import stability as stability
    from embedtopics.plots._bars import terms as terms
    from embedtopics.plots._classification import confusion as confusion
    from embedtopics.plots._classification import prevalence as prevalence
    from embedtopics.plots._classification import reliability as reliability
    from embedtopics.plots._classification import risk_coverage as risk_coverage
    from embedtopics.plots._comparison import comparison as comparison
    from embedtopics.plots._geometry import cka as cka
    from embedtopics.plots._geometry import contextualization as contextualization
    from embedtopics.plots._hierarchy import hierarchy as hierarchy
    from embedtopics.plots._hierarchy import similarity as similarity
    from embedtopics.plots._layers import layers as layers
    from embedtopics.plots._learning import before_after as before_after
    from embedtopics.plots._learning import learning_curves as learning_curves
    from embedtopics.plots._map import map as map
    from embedtopics.plots._mixture import mixture as mixture
    from embedtopics.plots._over_time import by_group as by_group
    from embedtopics.plots._over_time import effects as effects
    from embedtopics.plots._over_time import over_time as over_time
    from embedtopics.plots._tokens import tokens as tokens
    from embedtopics.plots._word_map import word_map as word_map
    from embedtopics.plots._word_map import word_paths as word_paths

__getattr__, __dir__, __all__ = attach(__name__, __file__)
