"""What a result says of its own terms, so that they are counted and weighed alike again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import Decision, TopicResult
from embedtopics.terms import ClassTfidf
from embedtopics.topics.describe import TermSettings

__all__ = [
    "FITTED_ROWS", "GIVEN", "LEFT_OUT", "TEXTS", "describe_weighting", "languages_of",
    "lost_stages", "recorded_weighting", "refuse_without_texts", "term_settings_of", "weighting_of",
]  # fmt: skip

OURS = "ClassTfidf"
GIVEN = "given"
"""What stands in the settings for the encoder where the caller gave the vectors."""
STAGES = ("encoder", "reducer", "clusterer", "weighting", "guidance")
"""Parameters of a model that are objects, of which a saved result holds only a description."""

TEXTS, LEFT_OUT = "texts", "left out"
"""What stands in the settings of a result that is shared without its texts."""


FITTED_ROWS = "n_fitted_rows"
"""What stands in the settings of a result with added rows: how many of the first are of the fit."""


def refuse_without_texts(result: TopicResult) -> None:
    """Refuse a result that was shared without its texts where its words are needed.

    Raises
    ------
    InputError
    """
    if result.settings.get(TEXTS) == LEFT_OUT:
        raise InputError(
            "the result was shared without its texts, and does not know which document holds which "
            "term, so that topics cannot be described anew; ask whoever has the texts to do this"
        )


def describe_weighting(weighting: TermWeighting | None) -> dict[str, Any] | str:
    """Return what has to be written down of a weighting to make it again; of others their name."""
    if weighting is None or type(weighting) is ClassTfidf:
        parameters = (weighting or ClassTfidf()).get_params()
        seeds = parameters["seed_terms"]
        return {"name": OURS, **parameters, "seed_terms": None if seeds is None else list(seeds)}
    return repr(weighting)


def weighting_of(result: TopicResult, given: TermWeighting | None = None) -> TermWeighting:
    """Return the weighting that a result was made with.

    Parameters
    ----------
    result : TopicResult
    given : TermWeighting, optional
        Taken in its place.

    Raises
    ------
    InputError
        Where the result was made with a weighting of the user's own, and none is given; or its
        terms cannot be counted, because it was shared without its texts.
    """
    refuse_without_texts(result)
    if given is not None:
        return given
    return recorded_weighting(result.settings.get("weighting"))


def recorded_weighting(recorded: dict[str, Any] | str | None) -> TermWeighting:
    """Return the weighting that `describe_weighting` wrote down.

    Raises
    ------
    InputError
        Where it was one of the user's own.
    """
    if recorded is None:
        return ClassTfidf()
    if isinstance(recorded, dict) and recorded.get("name") == OURS:
        return ClassTfidf(**{name: value for name, value in recorded.items() if name != "name"})
    raise InputError(
        f"the terms were weighed by {recorded}, which a result cannot hold; give it as weighting="
    )


def term_settings_of(result: TopicResult) -> TermSettings:
    """Return how the terms of a result were counted and chosen."""
    settings = result.settings
    stop_words = settings.get("stop_words", "auto")
    span = settings.get("ngram_range", (1, 2))
    return TermSettings(
        stop_words=stop_words if stop_words == "auto" else tuple(stop_words),
        ngram_range=(int(span[0]), int(span[1])),
        min_df=settings.get("min_df"),
        n_keywords=int(settings.get("n_keywords", TermSettings.n_keywords)),
        max_df=settings.get("max_df", TermSettings.max_df),
        extra_stop_words=tuple(settings.get("extra_stop_words", ())),
    )


def languages_of(result: TopicResult) -> tuple[str, ...]:
    """Return the languages whose stop words and stems apply."""
    return tuple(result.settings.get("languages", ()))


def lost_stages(
    loaded: Mapping[str, Any], result: TopicResult, parameters: Mapping[str, Any]
) -> list[Decision]:
    """Say which objects of a loaded model's fit were not there when it was fitted again.

    Parameters
    ----------
    loaded : mapping
        Settings of the result that was loaded.
    result : TopicResult
        Of the new fit.
    parameters : mapping
        Those of the model.
    """
    lost = [
        name for name in STAGES
        if parameters[name] is None and loaded.get(name) != result.settings.get(name)
    ]  # fmt: skip
    if result.settings.get("encoder") == GIVEN:
        lost = [name for name in lost if name != "encoder"]
    if not lost:
        return []
    message = (
        "The model was loaded from a folder, which does not bring back what its fit was given as "
        f"{', '.join(lost)}; this fit went on without, so give it to TopicModel anew."
    )
    return [Decision("corpus", "not_loaded", lost, message)]
