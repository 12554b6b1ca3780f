"""The entries of log files: a line with a time, in text or JSON, and the lines that follow it."""

import ast
import json
import re
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

BEGINS_ENTRY: Final = re.compile(
    r'(?:\{"time": ")?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})'
)
"""The beginning of an entry in text, or in JSON."""
_TEXT_ENTRY: Final = re.compile(
    r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<pid>\d+) (?P<logger>[^:\s]+): (?P<message>.*)",
    re.DOTALL,
)
"""An entry in text, in its parts."""
_LEVEL: Final = re.compile(
    r"(?:^\S+ \S+ |\"level\": ?\")(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_WORDS_OF_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}
"""Python's words for levels of Connect."""
_CONNECTOR: Final = re.compile(
    r"""\bconnector(?:=|": ?)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s\]]+)"""
)
"""The field of an entry that names its connector, in text or in JSON."""


class Level(StrEnum):
    """The levels of a log."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"


class LogEntry(NamedTuple):
    """An entry of a log, with the lines that belong to it."""

    file: str
    """The name of its file, without what a full one has in addition."""
    text: str

    @property
    def time(self) -> str:
        """Its local time, `2013-01-31 23:59:59,999`; "" if it has none."""
        found = BEGINS_ENTRY.match(self.text)
        return "{} {},{}".format(*found.groups()) if found else ""

    def has_level(self, least: Level) -> bool:
        """Return whether it has at least a level; one without a level has any."""
        match = _LEVEL.search(self.text.partition("\n")[0])
        levels = [*Level]
        word = _WORDS_OF_LEVELS.get(match[1], match[1]) if match else Level.FATAL
        return levels.index(Level(word)) >= levels.index(least)

    def connectors(self) -> set[str]:
        """Return the names of the connectors that its fields say it is about."""
        return {_read_name(match[1]) for match in _CONNECTOR.finditer(self.text)}

    def as_object(self) -> dict[str, object]:
        """Return it as it is in JSON; one that was written as text has its parts."""
        if self.text.startswith("{"):
            with suppress(ValueError, RecursionError):
                return {**json.loads(self.text), "file": self.file}
        found = _TEXT_ENTRY.match(self.text)
        parts = found.groupdict() if found else {"message": self.text}
        return {**parts, "file": self.file}


def _read_name(word: str) -> str:
    """Return the name that a field has: as it is, or as a literal if it has blanks."""
    if word.startswith('"'):
        with suppress(ValueError):
            return str(json.loads(word))
    if word.startswith("'"):
        with suppress(ValueError, SyntaxError):
            name = str(ast.literal_eval(word))
            return name if {" ", "]"} & {*name} or not name.isprintable() else word
    return word


class EntryChoice:
    """The entries that somebody asks for: of some names, a time and a level."""

    def __init__(
        self, names: list[str], since: timedelta | None = None, least: Level | None = None
    ) -> None:
        """`names` are of connectors, tasks (`flights-0`) or workers; none: all entries.

        `since` is how old an entry may be, `least` its lowest level.
        """
        named = "|".join(map(re.escape, names))
        self._about = re.compile(rf"(?<![\w.])({named})(?!\w)" if named else "")
        """Matches an entry with one of the names, or any entry if there are none."""
        self._least = least
        self._earliest = ""
        """A time as the files have it; empty: entries may be of any time."""
        if since is not None:
            earliest = datetime.now() - since  # noqa: DTZ005  # as in the files
            self._earliest = earliest.isoformat(" ", "milliseconds").replace(".", ",")

    def wants(self, entry: LogEntry) -> bool:
        """Return whether an entry is asked for."""
        return (
            (not self._earliest or entry.time >= self._earliest)
            and bool(self._about.search(entry.text))
            and (self._least is None or entry.has_level(self._least))
        )
