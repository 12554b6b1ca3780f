"""The commands `logs` and `log-level`: what the processes of a node write of themselves.

The files of all processes are merged in the order of their entries' times, and read on as they
grow. An entry is a line with a time, in text or JSON, and the lines without one that follow it. A
full file is put aside under another name, which may happen between two looks.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from heapq import merge
from pathlib import Path
from typing import Annotated, Final

from ..adapters.parameters import Argument, Option
from ..output.printing import Failed, say
from ..requests.client import find_client
from ..requests.grammar import Kind, parse_task, split_words
from ..requests.names import complete_names, name_argument
from ..requests.options import LocalOptions, RemoteOptions, with_options
from .top import MEASURED

BEGINS_ENTRY: Final = re.compile(
    r'(?:\{"time": ")?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3})'
)
"""The beginning of an entry in text, or in JSON."""
ASIDE: Final = ".1"
"""What is added to the name of a log file that is full."""
LOOK_SECONDS: Final = 0.5
"""The time between two looks for new entries."""


class Level(StrEnum):
    """The levels of a log."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"


@with_options(LocalOptions)
def logs(
    options: LocalOptions,
    words: Annotated[
        list[str] | None,
        name_argument(MEASURED, " of what the lines are about, all without one", may_be_all=True),
    ] = None,
    *,
    follow: Annotated[
        bool, Option("--follow", "-f", help="Continue with new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Print the log files of this node, also of one that has ended, in the order of their times."""
    names = split_words("logs", words or [], MEASURED, may_be_all=True).names
    folder = options.load_config().data_path / "logs"
    as_shown = [str((parse_task(each) if "/" in each else None) or each) for each in names]
    named = "|".join(map(re.escape, as_shown))
    is_about = re.compile(rf"(?<![\w.])({named})(?!\w)" if named else "")
    try:
        for entry in read_entries(folder, follow=follow):
            if is_about.search(entry):
                for line in entry.split("\n"):
                    say(line)
                sys.stdout.flush()
    except KeyboardInterrupt:  # the normal end of `--follow`
        return


@with_options(RemoteOptions)
def log_level(
    options: RemoteOptions,
    logger: Annotated[
        str,
        Argument(
            metavar="LOGGER",
            help="As `get loggers` shows it, or root.",
            show_default=False,
            complete=complete_names((Kind.LOGGER,)),
        ),
    ],
    level: Annotated[Level, Argument(case_sensitive=False, show_default=False)],
) -> None:
    """Set the level of a logger, in all processes of the node until it ends."""
    find_client(options).put(object, "admin", "loggers", logger, body={"level": level.value})
    say(f"logger {logger} has level {level.value}")


class LogFileReader:
    """Reads the entries of one log file, as it grows; a traceback belongs to its entry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        """Which file that was at the last look; 0: there was none yet."""
        self._position = 0
        """What was read of the file, in bytes."""

    def read(self) -> list[str]:
        """Return the entries since the last call; raises `Failed`.

        What came last into a file that was put aside is among them. A file that is shorter than
        before is a new one.
        """
        try:
            rest = self._rest_put_aside()
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._position:
                    self._position = 0
                file.seek(self._position)
                content = file.read()
        except FileNotFoundError:  # it was put aside, and its successor begins with a next line
            return []
        except OSError as error:
            raise Failed(f"{self._path} cannot be read: {error.strerror or error}") from None
        whole = content[: content.rfind(b"\n") + 1]  # the rest is being written
        self._position += len(whole)
        entries: list[str] = []
        for line in (rest + whole).decode(errors="replace").splitlines():
            if entries and not BEGINS_ENTRY.match(line):
                entries[-1] += f"\n{line}"
            else:
                entries.append(line)
        return entries

    def _rest_put_aside(self) -> bytes:
        """Return what was not read yet of a file in whose place there is another one now."""
        former, self._inode = self._inode, self._path.stat().st_ino
        if former in {0, self._inode}:
            return b""
        position, self._position = self._position, 0
        with suppress(OSError), self._path.with_name(self._path.name + ASIDE).open("rb") as file:
            if os.fstat(file.fileno()).st_ino == former:
                file.seek(position)
                return file.read()
        return b""


def read_entries(folder: Path, *, follow: bool) -> Iterator[str]:
    """Yield the entries of all log files in a folder, and those that follow, endlessly.

    Raises `Failed`.
    """
    yield from _merged(LogFileReader(each) for each in folder.glob(f"*.log{ASIDE}"))
    readers: dict[Path, LogFileReader] = {}
    while True:
        for path in sorted(folder.glob("*.log")):
            readers.setdefault(path, LogFileReader(path))
        if not readers:
            raise Failed(
                f"{folder} has no log files: has a node run here (--data-dir), and does it log to"
                " files (log.to)?"
            )
        yield from _merged(readers.values())
        if not follow:
            return
        time.sleep(LOOK_SECONDS)


def _merged(readers: Iterable[LogFileReader]) -> Iterator[str]:
    """Yield new entries in the order of their times."""
    return merge(*(each.read() for each in readers), key=_time_of)


def _time_of(entry: str) -> str:
    """Return the local time of an entry, `2013-01-31 23:59:59,999`; "" if it has none."""
    found = BEGINS_ENTRY.match(entry)
    return "{} {},{}".format(*found.groups()) if found else ""
