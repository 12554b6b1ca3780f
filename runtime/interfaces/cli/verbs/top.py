"""The command `top`: what each task reads and writes per second."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Struct, structs
from rich.filesize import decimal

from ...replies.progress import TaskCounts, UnreadInput
from ..adapters.parameters import Option
from ..output.layout import TableLayout
from ..output.phrases import shorten_worker
from ..output.printing import Misused, Table, show
from ..requests.client import Client, find_client
from ..requests.grammar import Kind, split_words
from ..requests.names import name_argument
from ..requests.options import RemoteReadOptions, with_options
from ..requests.resolving import choose_connectors
from ..requests.selecting import Choice, Selector
from ..requests.several import pick
from ..requests.waiting import parse_duration
from ..tables.connectors import TaskLine, format_lag
from .lists import fetch_tasks


class TaskRates(Struct, frozen=True):
    """The rates of a task per second, over the time between two requests."""

    id: str
    worker: str
    rows_in: float
    rows_out: float
    bytes_in: float
    bytes_out: float
    lag: UnreadInput | None


CLEARED: Final = "\x1b[H\x1b[2J"
"""Clears a terminal."""
MEASURED: Final = (Kind.CONNECTOR, Kind.TASK, Kind.WORKER)


class Measure(StrEnum):
    """The figures that tasks are sorted by, the largest first; and their names."""

    ROWS_IN = "rows-in"
    ROWS_OUT = "rows-out"
    READ = "read"
    WRITTEN = "written"
    LAG = "lag"
    NAME = "name"


_SORT_KEYS: Final[Mapping[Measure, Callable[[TaskRates], Any]]] = {
    Measure.ROWS_IN: lambda it: -it.rows_in,
    Measure.ROWS_OUT: lambda it: -it.rows_out,
    Measure.READ: lambda it: -it.bytes_in,
    Measure.WRITTEN: lambda it: -it.bytes_out,
    Measure.LAG: lambda it: (-(it.lag.records or 0), -it.lag.bytes) if it.lag else (1, 0),
    Measure.NAME: lambda it: it.id,
}


class Measured(NamedTuple):
    """The tasks that are measured, and what their figures are added up by."""

    client: Client
    kind: Kind
    names: Sequence[str]
    per: Kind


@dataclass(frozen=True, slots=True)
class TopOptions(RemoteReadOptions):
    """A cluster, and what is measured there, how long, and in which order it is shown."""

    selector: Selector = None
    interval: Annotated[str, Option("--interval", metavar="TIME", help="How long to measure.")] = (
        "5s"
    )
    sort_by: Annotated[
        Measure, Option("--sort-by", help="The figure whose largest come first.")
    ] = Measure.ROWS_IN
    watch: Annotated[
        bool, Option("--watch", "-w", help="Measure again and again, until Ctrl-C.")
    ] = False
    no_headers: Annotated[bool, Option("--no-headers", help="Print no headings.")] = False


@with_options(TopOptions)
def top(
    options: TopOptions,
    words: Annotated[
        list[str] | None,
        name_argument(MEASURED, " of what is measured, all without one", may_be_all=True),
    ] = None,
) -> None:
    """Measure what each task reads and writes per second, and what it has left to read.

    `top connectors` and `top workers` add the tasks of each up. A batch counts when it is
    committed, so an interval should be as long as some batches.
    """
    seconds = parse_duration(options.interval) / 1000
    if not seconds:
        raise Misused("--interval is longer than 0s")
    kind, names, is_told = split_words("top", words or [], MEASURED, may_be_all=True)
    choice = Choice(selector=options.selector)
    choice.check(names)
    client = find_client(options)
    if not choice.is_by_name and not (names := choose_connectors(client, (), choice)):
        return
    chosen = Kind.CONNECTOR if options.selector is not None else kind
    measured = Measured(client, chosen, names, kind if is_told else Kind.TASK)
    before = _tasks(measured)
    try:
        while True:
            time.sleep(seconds)
            after = _tasks(measured)
            _show_rates(_rates(before, after, seconds), measured.per, options)
            if not options.watch:
                return
            sys.stdout.flush()
            before = after
    except KeyboardInterrupt:
        if not options.watch:  # else it is the normal end
            raise


def _show_rates(of_tasks: Sequence[TaskRates], per: Kind, options: TopOptions) -> None:
    rates = sorted(_summed(of_tasks, per), key=_SORT_KEYS[options.sort_by])
    if options.watch and sys.stdout.isatty():
        sys.stdout.write(CLEARED)
    table = replace(_tabulate_rates(rates, per), has_headings=not options.no_headers)
    show(options.output, rates, [table])


def _tasks(measured: Measured) -> list[TaskLine]:
    client, kind, names, _ = measured
    if kind is not Kind.WORKER:
        return fetch_tasks(client, names)
    there = fetch_tasks(client)
    at_work = dict.fromkeys(shorten_worker(each.worker_id) for each in there)
    pick("worker", names, [*at_work], lambda name: [name])
    return [each for each in there if not names or shorten_worker(each.worker_id) in names]


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
            each.id,
            shorten_worker(each.worker_id),
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


def _summed(rates: Sequence[TaskRates], per: Kind) -> list[TaskRates]:
    """Return the sums of the tasks of each connector or worker."""
    if per is Kind.TASK:
        return [*rates]
    sums: dict[str, TaskRates] = {}
    for each in rates:
        name = each.worker if per is Kind.WORKER else each.id.rpartition("-")[0]
        sums[name] = _added(sums[name], each) if name in sums else structs.replace(each, id=name)
    return [*sums.values()]


def _added(one: TaskRates, other: TaskRates) -> TaskRates:
    lags = [each for each in (one.lag, other.lag) if each is not None]
    records = [each.records for each in lags if each.records is not None]
    lag = UnreadInput(
        sum(each.ranges for each in lags),
        sum(each.bytes for each in lags),
        sum(records) if lags and len(records) == len(lags) else None,
    )
    return structs.replace(
        one,
        worker=one.worker if one.worker == other.worker else "",
        rows_in=one.rows_in + other.rows_in,
        rows_out=one.rows_out + other.rows_out,
        bytes_in=one.bytes_in + other.bytes_in,
        bytes_out=one.bytes_out + other.bytes_out,
        lag=lag if lags else None,
    )


def _tabulate_rates(rates: Sequence[TaskRates], per: Kind) -> Table:
    layout = TableLayout(
        TaskRates,
        f"{per.value.upper()}: id, ROWS IN/S: rows_in, ROWS OUT/S: rows_out, READ/S: bytes_in, "
        "WRITTEN/S: bytes_out, LAG: lag",
        {
            **dict.fromkeys(("ROWS IN/S", "ROWS OUT/S"), "{:,.0f}".format),
            **dict.fromkeys(("READ/S", "WRITTEN/S"), lambda rate: decimal(round(rate))),
            "LAG": format_lag,
        },
        empty=f"no {per.plural}",
    )
    return layout.lay_out(rates)
