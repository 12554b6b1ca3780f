"""Tells in the node's log what happens to its groups, each thing once, from their control logs.

How far it came is kept beside the logs, so that a process which is started again goes on there;
after a crash the last lines may come twice, and none is left out.
"""

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

from .....events.entries.codec import CodecError
from .....events.log.errors import LogError
from .....projections.watch import lines
from .....projections.watch.lines import EventLine
from ....cluster.node_files import write_json
from ..reading.logs import FollowedGroup

LOGGER = logging.getLogger(lines.__name__)
FILE: Final = "told.json"
CATCH_UP_MAX: Final = 10_000
"""How many entries of a log that was never told are told: the first ones of a new group."""


class Teller:
    """Logs the events of all groups of a node that have their own logs, as these change."""

    def __init__(self, log_folder: Path) -> None:
        self._file = log_folder / FILE
        self._told: dict[str, int] = _read(self._file)
        """The offset of the first entry that was not told yet, by group."""

    def tell(self, group_id: str, logs: FollowedGroup) -> None:
        """Log the new events of a group; raises `LogError`, `CodecError`."""
        before = self._told.get(group_id)
        self._tell(group_id, logs)
        if self._told[group_id] != before:
            with suppress(OSError):  # what is told twice then does no harm
                write_json(self._file, self._told)

    def _tell(self, group_id: str, logs: FollowedGroup) -> None:
        """Tell what is new in a group; after a mistake of this code, what comes from now on."""
        try:
            found, end = logs.watch(self._start_at(group_id, logs.group.end))
            for line in found:
                _write(line)
            self._told[group_id] = end
        except (LogError, CodecError):
            raise
        except Exception:
            at, self._told[group_id] = self._told.get(group_id, 0), logs.group.end
            told = "what happened in group %s is not told from entry %d to %d of its log"
            LOGGER.exception(told, group_id, at, logs.group.end)

    def _start_at(self, group_id: str, end: int) -> int:
        """Return where to begin in a group's log; one that nobody told so far begins at its end."""
        at = self._told.get(group_id, 0 if end <= CATCH_UP_MAX else end)
        return at if at <= end else 0


def _write(line: EventLine) -> None:
    """Write a line with the time at which it happened."""
    if LOGGER.isEnabledFor(line.level):
        text = line.text if line.text.isprintable() else ascii(line.text)  # names may be anything
        place = (LOGGER.name, line.level, __file__, 0, "%s", (text,), None)
        record = LOGGER.makeRecord(*place, extra=line.fields)
        record.created, record.msecs = line.time_ms / 1000, float(line.time_ms % 1000)
        LOGGER.handle(record)


def _read(file: Path) -> dict[str, int]:
    try:
        return {str(name): int(at) for name, at in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
