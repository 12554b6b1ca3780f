"""Log levels that are changed while a node runs, with Kafka Connect's names.

They are in `levels.json` beside the logs until the node ends; those that are to be kept are there
at its next start as well. A process reads the file at its start, and when a message says that it
has changed. A level applies to its logger and all loggers below, whose former settings are removed.
A library's logger whose level was set by its own code keeps that, unless it is set by name.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from .log_file import open_private

FILE: Final = "levels.json"
ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {
    "OFF": 100,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
"""The levels of log4j, highest first."""
_applied: set[str] = set()
"""The loggers of this process whose levels come from the file."""


@dataclass(frozen=True, slots=True)
class ReadLogLevels:
    """To any actor: reload the levels; it forwards this to its children."""


@dataclass(frozen=True, slots=True)
class LogLevelsRead:
    """From an actor: its process has reloaded the levels, and has forwarded the message."""


class LevelSet(NamedTuple):
    """A level that was set, and the wall-clock time of that."""

    level: str
    modified_ms: int
    is_kept: bool = False
    """Whether it counts after the node has ended, too."""


class LoggerState(NamedTuple):
    """The effective level of a logger, and when it was set; None: not since the node started."""

    level: str
    modified_ms: int | None


def apply(folder: Path) -> None:
    """Apply the levels in the file to this process's loggers."""
    wanted = read(folder)
    for name in _applied - wanted.keys():
        logging.getLogger(name).setLevel(logging.NOTSET)
    for name, each in wanted.items():
        logging.getLogger(name).setLevel(LEVELS[each.level])
    _applied.clear()
    _applied.update(wanted)


def read(folder: Path) -> dict[str, LevelSet]:
    """Return the levels in the file, by logger; none if there is no file."""
    try:
        told = json.loads((folder / FILE).read_bytes())
        found = {str(name): _level_of(*each) for name, each in told.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return {name: each for name, each in found.items() if each.level in LEVELS}


def _level_of(level: object, modified_ms: int, *is_kept: object) -> LevelSet:
    return LevelSet(str(level), int(modified_ms), is_kept == (True,))


def write(folder: Path, name: str, level: str, now_ms: int, *, is_kept: bool = False) -> None:
    """Set the level of a logger and of all below it; raises `OSError`."""
    others = {key: each for key, each in read(folder).items() if not is_below(key, name)}
    _replace(folder, {**others, name: LevelSet(level, now_ms, is_kept)})


def _replace(folder: Path, levels: Mapping[str, LevelSet]) -> None:
    made = folder / f"{FILE}.new"
    made.unlink(missing_ok=True)
    with open_private(str(made)) as file:
        json.dump(levels, file)
    made.replace(folder / FILE)


def forget(folder: Path) -> None:
    """Remove all levels but those that are kept: a node starts with those of its configuration."""
    kept = {name: each for name, each in read(folder).items() if each.is_kept}
    if kept:
        _replace(folder, kept)
    else:
        (folder / FILE).unlink(missing_ok=True)


def is_below(name: str, namespace: str) -> bool:
    """Return whether a logger is another one, or below it."""
    return namespace in {ROOT, name} or name.startswith(f"{namespace}.")


def loggers(folder: Path) -> dict[str, LoggerState]:
    """Return all loggers of this process, and those above them, by name."""
    wanted = read(folder)
    named = sorted(logging.root.manager.loggerDict)  # with those that have only others below them
    found = {name: _state(logging.getLogger(name), wanted) for name in named}
    return {ROOT: _state(logging.root, wanted), **found}


def state_elsewhere(wanted: Mapping[str, LevelSet], name: str, level: str) -> LoggerState:
    """Return the state of a logger of another process, whose level was this before any was set."""
    above = [each for each in wanted if is_below(name, each)]
    deciding = max(above, key=lambda each: -1 if each == ROOT else len(each), default=None)
    if deciding is None:
        return LoggerState(level, None)
    return LoggerState(wanted[deciding].level, wanted[deciding].modified_ms)


def _state(logger: logging.Logger, wanted: Mapping[str, LevelSet]) -> LoggerState:
    """Return the logger that determines the level of another one, and its setting."""
    deciding: logging.Logger = logger
    while not deciding.level and deciding.parent is not None:
        deciding = deciding.parent
    names = (name for name, number in LEVELS.items() if number <= deciding.level)
    told = wanted.get(deciding.name)
    return LoggerState(next(names, "ALL"), told.modified_ms if told else None)
