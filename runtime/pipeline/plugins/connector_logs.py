"""The log of each connector, beside that of the plugin host in which it runs.

A host logs as a Connect worker does: a line that belongs to a connector has its name in brackets,
also if a thread has written it that the plugin has started, since threads inherit that. The lines
of a stack trace belong to the line before them.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

from .host_names import owner_of

_LONGEST: Final = 150
"""How many characters of a connector's name are in that of its file."""
_BEGIN: Final = re.compile(r"\[\d[^]]*\] [A-Z]+ (?:\[(?P<name>.+?)\|(?:worker|task-\d+)[]|])?")
_MORE: Final = re.compile(r"\s|Caused by: |[\w.$]+(?:Exception|Error)\b")


class ConnectorLogs:
    """Sorts the lines of one host by connector."""

    def __init__(self, folder: Path) -> None:
        """Sort into the logs of a folder; nothing is made there yet."""
        self._folder = folder
        self._last: Path | None = None
        """The log of the last line that has one."""

    def log_of(self, line: str) -> Path | None:
        """Return the log of the connector that a line belongs to; None: it belongs to none."""
        if begin := _BEGIN.match(line):
            self._last = self._path(owner_of(begin["name"])) if begin["name"] else None
        elif not _MORE.match(line):
            return None  # it may be anybody's, such as what a plugin prints
        return self._last

    def _path(self, connector: str) -> Path:
        return self._folder / f"connector-{quote(connector, safe='')[:_LONGEST]}.log"
