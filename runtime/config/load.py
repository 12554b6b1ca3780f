"""The configuration of a node, put together from its sources and found to be sound."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...actors.settings import Value
from ..pipeline.spark.settings import SettingRefused, refuse_unsafe
from .keys import ASSIGNOR_CONF, KEYS, SETTINGS, SPARK_CONF, Config, Contradiction, Contradictory
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
    values: dict[str, Any] = dict(_parsed(given))
    try:
        config = Config(**values, spark_conf=spark, assignor_conf=assignors)
    except Contradictory as error:
        raise ConfigError(_with_sources(each, given) for each in error.found) from None
    return Loaded(config, {key: each.source for key, each in given.items()})


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


def _parsed(given: Mapping[str, GivenValue]) -> Iterator[tuple[str, Value]]:
    """Yield the fields of `Config` that were given; raises `ConfigError` with all that is wrong."""
    problems: list[str] = []
    for key, name in KEYS.items():
        if key not in given or key.startswith(PASSED_ON):
            continue
        text, source = given[key]
        try:
            yield name, SETTINGS[key].parse(text)
        except ValueError as error:
            why = f"{error}; " if str(error) else ""
            allowed = SETTINGS[key].allowed
            problems.append(f"{key} = {text!r} (from {source}): {why}allowed is {allowed}")
    if problems:
        raise ConfigError(problems)


def _with_sources(found: Contradiction, given: Mapping[str, GivenValue]) -> str:
    sources = (f"{key}: {given[key].source}" for key in found.keys if key in given)
    return f"{found.text} ({'; '.join(sources)})"
