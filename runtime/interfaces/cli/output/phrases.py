"""Formats names, causes, times and durations for users."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, TypeVar

from .....events.model import Cause, Grants, Resource, Resources, Why
from ...replies.node import ResourceId

T = TypeVar("T")

NAMES_MAX: Final = 12
"""The maximum number of names in one line; -o json has all."""
SHORT_ID: Final = 8
"""The length of a shortened member id, which still distinguishes members."""

ABOUT_WORKERS: Final = frozenset(
    {
        Why.MEMBER_JOINED,
        Why.MEMBER_LEFT,
        Why.GROUP_UPGRADED,
        Why.GROUP_DOWNGRADED,
        Why.SESSION_EXPIRED,
        Why.PROCESS_ENDED,
        Why.REBALANCE_EXPIRED,
        Why.MEMBER_REMOVED,
        Why.ASSIGNORS_CHANGED,
        Why.REASON_GIVEN,
        Why.METADATA_CHANGED,
        Why.SUBSCRIPTION_CHANGED,
        Why.WORKER_CORDONED,
        Why.WORKER_UNCORDONED,
        Why.WORKER_DRAINED,
        Why.WORKER_EXPECTED,
    }
)
"""The causes whose subject is a worker's URL."""

_WHYS: Final = {each.value: each for each in Why}


def shorten_worker(url: str) -> str:
    """Return the name at the end of a worker's URL: w1 of 127.0.0.1:8083/w1."""
    return url.rpartition("/")[2] or url


def shorten_member(url: str, member_id: str) -> str:
    """Return `w1(1b9d6bcd)`, or only the start of the member id if the worker is unknown."""
    short = member_id[:SHORT_ID]
    return f"{shorten_worker(url)}({short})" if url and url != member_id else short


def format_cause(cause: Cause) -> str:
    """Return a cause as text, with the name of a worker instead of its URL."""
    if cause.why in ABOUT_WORKERS:
        return str(cause._replace(subject=shorten_worker(cause.subject)))
    return str(cause)


def format_reply_cause(cause: str, subject: str) -> str:
    """Return a cause in a reply as text; unknown ones of other versions unchanged."""
    if cause in _WHYS:
        return format_cause(Cause(_WHYS[cause], subject))
    return f"{cause} {subject}".rstrip()


def format_count(count: int, noun: str) -> str:
    """Return `1 error`, or `2,000 errors`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_ids(resources: Iterable[ResourceId]) -> str:
    """Return resources as `flights flights-0..3`."""
    return format_resources((each.connector, each.task) for each in resources)


def format_first(ids: Sequence[str]) -> str:
    """Return the first `NAMES_MAX` ids, and the number of the others."""
    more = f" and {len(ids) - NAMES_MAX} more" if len(ids) > NAMES_MAX else ""
    return " ".join(ids[:NAMES_MAX]) + more


def group_ids(pairs: Iterable[tuple[T, str]]) -> Iterator[tuple[T, str]]:
    """Group ids by their first element; yield it with its ids in one line."""
    sharing: dict[T, list[str]] = {}
    for common, resource_id in pairs:
        sharing.setdefault(common, []).append(resource_id)
    for common, ids in sharing.items():
        yield common, format_first(ids)


def format_resources(resources: Iterable[tuple[str, int | None]]) -> str:
    """Return connectors (task None) and tasks in short form, with ranges of task numbers."""
    names: list[str] = []
    ordered = sorted(resources, key=lambda each: (each[0], -1 if each[1] is None else each[1]))
    for connector, group in groupby(ordered, lambda each: each[0]):
        numbers = [number for _, number in group]
        if numbers[0] is None:
            names.append(connector)
        names += [f"{connector}-{run}" for run in _runs(n for n in numbers if n is not None)]
    if len(names) > NAMES_MAX:
        names[NAMES_MAX:] = [f"and {len(names) - NAMES_MAX} more"]
    return " ".join(names)


def format_resource_set(resources: Resources | Grants | Iterable[Resource]) -> str:
    """Return resources in their short form, `nothing` for none."""
    return format_resources(
        (each.connector, each.task if each.is_task else None) for each in resources
    ) or ("nothing")


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """Yield `4` for a single number and `0..3` for consecutive ones."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"


_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


def format_age(time_ms: int | None) -> str:
    """Return the age of a time in its largest whole unit: `5m ago`."""
    if time_ms is None:
        return ""
    seconds = max(0, int(time.time() - time_ms / 1000))
    unit, size = next((each for each in _UNITS if seconds >= each[1]), ("s", 1))
    return f"{seconds // size}{unit} ago"


def format_time(time_ms: int | None) -> str:
    """Return `2013-01-31T23:59:59.999Z`; "" for None, the number if it is out of range."""
    if not time_ms:
        return ""
    try:
        told = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
    return told.replace("+00:00", "Z")


def format_seconds(duration_ms: int | None) -> str:
    """Return a duration as `0.024 s`; "" for None."""
    return "" if duration_ms is None else f"{duration_ms / 1000:.3f} s"
