"""The configuration of a node, put together from its sources and found to be sound."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..spark.settings import SettingRefused, refuse_unsafe
from .keys import ASSIGNOR_CONF, KEYS, SPARK_CONF, Config, Contradiction, kind_of
from .sources import PASSED_ON, SPARK, ConfigError, GivenValue, gather

__all__ = ["Config", "ConfigError", "Loaded", "load_config", "load_with_sources"]


class Loaded(NamedTuple):
    """A configuration, and the source of each setting that was not left at its default."""

    config: Config
    sources: Mapping[str, str]


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    overrides: Sequence[str] = (),
) -> Config:
    """Return the configuration; raises `ConfigError` with all that is wrong with it.

    Later sources win: defaults, `file` (TOML or .properties), `environ` (FAIRLEAD_GROUP_ID for
    group.id), `overrides` (`key=value`).
    """
    return load_with_sources(file, environ, overrides).config


def load_with_sources(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str]
) -> Loaded:
    """Return the configuration, and what came from where; raises `ConfigError`."""
    given = gather(file, environ, overrides, KEYS.keys() - {SPARK_CONF, ASSIGNOR_CONF})
    spark, assignors = (_passed_on(prefix, given) for prefix in PASSED_ON)
    _refuse_unsafe(spark, given)
    values: dict[str, object] = {
        key: each.text for key, each in given.items() if not key.startswith(PASSED_ON)
    }
    try:
        config = Config.model_validate({**values, SPARK_CONF: spark, ASSIGNOR_CONF: assignors})
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        return Loaded(config, {key: each.source for key, each in given.items()})
    raise ConfigError(line for each in details for line in _told(each, given))


def _passed_on(prefix: str, given: Mapping[str, GivenValue]) -> Mapping[str, str]:
    """Return what is handed on as it is, by the names it has where it goes."""
    return {
        key.removeprefix(prefix): each.text for key, each in given.items() if key.startswith(prefix)
    }


def _refuse_unsafe(conf: Mapping[str, str], given: Mapping[str, GivenValue]) -> None:
    problems: list[str] = []
    for name, text in conf.items():
        try:
            refuse_unsafe({name: text})
        except SettingRefused as error:
            problems.append(f"{error} (from {given[SPARK + name].source})")
    if problems:
        raise ConfigError(problems)


def _told(detail: ErrorDetails, given: Mapping[str, GivenValue]) -> Iterator[str]:
    context = detail.get("ctx", {})
    if detail["type"] == "contradiction":
        found: Sequence[Contradiction] = context["found"]
        for each in found:
            sources = (f"{key}: {given[key].source}" for key in each.keys if key in given)
            yield f"{each.text} ({'; '.join(sources)})"
        return
    key = str(detail["loc"][0])
    text, source = given[key]
    allowed = kind_of(key).allowed
    why = f"{context['error']}; " if detail["type"] == "value_error" else ""
    yield f"{key} = {text!r} (from {source}): {why}allowed is {allowed}"
