"""The commands `top`, `logs` and `log-level`: what a node does now, and what it writes of it."""

import re
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer
from msgspec import Struct
from rich.filesize import decimal

from ...replies.progress import TaskCounts, UnreadInput
from ..command.client import client_of
from ..command.connector_tables import TaskLine, format_lag, list_tasks
from ..command.options import Here, ReadThere, There, takes
from ..command.printing import Misused, Section, Table, say, show
from ..requests.log_files import entries_of
from ..requests.names import OnlyAbout, OnlyOfConnectors
from ..requests.waiting import milliseconds
from .listing import fetch_connectors


class Level(StrEnum):
    """The levels of a log."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"


class TaskRates(Struct, frozen=True):
    """What a task did per second, over the time between two requests."""

    id: str
    rows_in: float
    rows_out: float
    bytes_in: float
    bytes_out: float
    lag: UnreadInput | None


@takes(ReadThere)
def top(
    place: ReadThere,
    names: OnlyOfConnectors = None,
    *,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="How long to measure.")
    ] = "5s",
) -> None:
    """Measure what each task reads and writes per second, and what it has left to read.

    A batch counts when it is committed, so an interval should be as long as some batches.
    """
    seconds = milliseconds(interval) / 1000
    if not seconds:
        raise Misused("--interval is longer than 0s")
    client = client_of(place)
    before = list_tasks(fetch_connectors(client, names or []))
    time.sleep(seconds)
    after = list_tasks(fetch_connectors(client, names or []))
    rates = _rates(before, after, seconds)
    show(place.output, rates, _rate_tables(rates))


@takes(Here)
def logs(
    place: Here,
    names: OnlyAbout = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Print the log files of this node, also of one that has ended, in the order of their times."""
    folder = place.configured().data_path / "logs"
    named = "|".join(map(re.escape, names or []))
    is_about = re.compile(rf"(?<![\w.])({named})(?!\w)" if named else "")
    try:
        for entry in entries_of(folder, follow=follow):
            if is_about.search(entry):
                for line in entry.split("\n"):
                    say(line)
                sys.stdout.flush()
    except KeyboardInterrupt:  # the normal end of `--follow`
        return


@takes(There)
def log_level(
    place: There,
    logger: Annotated[
        str,
        typer.Argument(
            metavar="LOGGER", help="As `get loggers` shows it, or root.", show_default=False
        ),
    ],
    level: Annotated[Level, typer.Argument(case_sensitive=False, show_default=False)],
) -> None:
    """Set the level of a logger, in all processes of the node until it ends."""
    client_of(place).put(object, "admin", "loggers", logger, body={"level": level.value})
    say(f"logger {logger} has level {level.value}")


_NONE: Final = TaskCounts(
    rows_in=0, rows_out=0, bytes_out=0, batches=0, unpublished=0, last_commit_ms=None, lag=None
)


def _rates(
    before: Sequence[TaskLine], after: Sequence[TaskLine], seconds: float
) -> list[TaskRates]:
    """Return the rates of the tasks that there were at both times."""
    counts = {(each.connector, each.task): each.progress or _NONE for each in before}

    def rate(old: int, new: int) -> float:
        return round(max(0, new - old) / seconds, 1)

    return [
        TaskRates(
            f"{each.connector}-{each.task}",
            rate(old.rows_in, new.rows_in),
            rate(old.rows_out, new.rows_out),
            rate(old.bytes_in, new.bytes_in),
            rate(old.bytes_out, new.bytes_out),
            new.lag,
        )
        for each in after
        if (old := counts.get((each.connector, each.task)))
        for new in [each.progress or _NONE]
    ]


def _rate_tables(rates: Sequence[TaskRates]) -> list[Section]:
    rows = [
        (
            each.id,
            f"{each.rows_in:,.0f}",
            f"{each.rows_out:,.0f}",
            decimal(round(each.bytes_in)),
            decimal(round(each.bytes_out)),
            format_lag(each.lag),
        )
        for each in sorted(rates, key=lambda each: -each.rows_in)
    ]
    columns = ("TASK", "ROWS IN/S", "ROWS OUT/S", "READ/S", "WRITTEN/S", "LAG")
    return [Table(columns, rows, "no tasks")]
