"""A fitted model is taken wherever a result is expected."""

from __future__ import annotations

import os
from typing import Any, Protocol, TypeAlias

from sklearn.exceptions import NotFittedError

from embedtopics.errors import InputError
from embedtopics.topics.results import TopicResult


class FittedTopicModel(Protocol):
    """An estimator with the result of its fit, such as a fitted `TopicModel`."""

    result_: TopicResult


FittedTopics: TypeAlias = TopicResult | FittedTopicModel
"""What `result_of` takes."""


def result_of(value: Any, parameter: str = "result") -> TopicResult:
    """Return a result, or the result of a fitted model.

    Parameters
    ----------
    value : TopicResult or fitted TopicModel
    parameter : str
        Name of the argument, for the error.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    InputError
        If it is another object; the remedy names the call that gives a result.
    """
    if isinstance(value, TopicResult):
        return value

    result = getattr(value, "result_", None)
    if isinstance(result, TopicResult):
        return result

    remedy = ""
    is_class = isinstance(value, type)
    if is_class and hasattr(value, "fit"):
        remedy = f"fit a model: {value.__name__}().fit(texts)"
    elif hasattr(value, "fit") and hasattr(value, "predict"):
        raise NotFittedError(
            f"this {type(value).__name__} is not fitted yet; call fit(texts) first"
        )
    elif isinstance(value, str | os.PathLike):
        remedy = f"load it: et.TopicResult.load({os.fspath(value)!r})"
    elif isinstance(getattr(value, "result", None), TopicResult):
        remedy = f"pass the result of the {type(value).__name__}, its attribute result"
    raise InputError(parameter, "a TopicResult or a fitted TopicModel", value, remedy)


def fitted_encoder(value: Any) -> Any:
    """Return the encoder of a fitted model, loaded if it is; None for a result."""
    encoder = getattr(value, "encoder", None)
    of_fit = getattr(value, "_of_fit", None)
    if of_fit is None:
        return encoder

    encoder_at_fit, loaded = of_fit
    return loaded if encoder_at_fit is encoder else encoder
