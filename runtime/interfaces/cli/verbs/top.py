"""The command `top`: what each task reads and writes per second."""

import time
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Struct, structs
from rich.filesize import decimal

from ...replies.progress import TaskCounts, UnreadInput
from ..adapters.parameters import Option
from ..output.layout import TableLayout
from ..output.phrases import shorten_worker
from ..output.printing import Misused, Section, show
from ..requests.client import Client, find_client
from ..requests.grammar import Kind, split_words
from ..requests.names import name_argument
from ..requests.options import RemoteReadOptions, with_options
from ..requests.several import pick
from ..requests.waiting import parse_duration
from ..tables.connectors import TaskLine, format_lag
from .listing import fetch_tasks


class TaskRates(Struct, frozen=True):
    """The rates of a task per second, over the time between two requests."""

    id: str
    worker: str
    rows_in: float
    rows_out: float
    bytes_in: float
    bytes_out: float
    lag: UnreadInput | None


MEASURED: Final = (Kind.CONNECTOR, Kind.TASK, Kind.WORKER)


@with_options(RemoteReadOptions)
def top(
    options: RemoteReadOptions,
    words: Annotated[
        list[str] | None,
        name_argument(MEASURED, " of what is measured, all without one", may_be_all=True),
    ] = None,
    *,
    interval: Annotated[
        str, Option("--interval", metavar="TIME", help="How long to measure.")
    ] = "5s",
) -> None:
    """Measure what each task reads and writes per second, and what it has left to read.

    `top connectors` and `top workers` add the tasks of each up. A batch counts when it is
    committed, so an interval should be as long as some batches.
    """
    seconds = parse_duration(interval) / 1000
    if not seconds:
        raise Misused("--interval is longer than 0s")
    kind, names, is_told = split_words("top", words or [], MEASURED, may_be_all=True)
    per = kind if is_told else Kind.TASK
    client = find_client(options)
    before = _tasks(client, kind, names)
    time.sleep(seconds)
    rates = _summed(_rates(before, _tasks(client, kind, names), seconds), per)
    show(options.output, rates, _tabulate_rates(rates, per))


def _tasks(client: Client, kind: Kind, names: Sequence[str]) -> list[TaskLine]:
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


def _tabulate_rates(rates: Sequence[TaskRates], per: Kind) -> list[Section]:
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
    return [layout.lay_out(sorted(rates, key=lambda each: -each.rows_in))]
