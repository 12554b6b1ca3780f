"""What workers of the no-op engine did, by their own records in the node's log."""

import itertools
import re
import time
from typing import NamedTuple

DEED = re.compile(
    r"(?P<day>\S+ \d\d:\d\d:\d\d),(?P<ms>\d{3}) INFO (?P<pid>\d+) "
    r"\S+\.runner: (?P<verb>runs|ends) (?P<resource>\S+) under (?P<token>\S+)"
)


class Deed(NamedTuple):
    """A line of a worker's own records: from then on it runs a resource, or does not."""

    at_ms: int
    pid: int
    is_begin: bool
    resource: str
    token: str


class Span(NamedTuple):
    """While a process ran a resource; without an end if it never said so."""

    begin_ms: int
    end_ms: float
    pid: int
    resource: str


def deeds_in(log: str) -> list[Deed]:
    """Read the records, in the order of writing."""
    return [_deed(match) for match in DEED.finditer(log)]


def spans_of(deeds: list[Deed]) -> list[Span]:
    """Find while each process ran each resource."""
    found = list[Span]()
    running = dict[tuple[int, str], int]()
    for deed in deeds:
        key = deed.pid, deed.resource
        if deed.is_begin:
            running.setdefault(key, deed.at_ms)
        elif key in running:
            found.append(Span(running.pop(key), deed.at_ms, *key))
    return found + [Span(begin, float("inf"), *key) for key, begin in running.items()]


def _deed(match: re.Match[str]) -> Deed:
    moment = time.mktime(time.strptime(match["day"], "%Y-%m-%d %H:%M:%S"))
    at_ms = int(moment) * 1000 + int(match["ms"])
    return Deed(
        at_ms, int(match["pid"]), match["verb"] == "runs", match["resource"], match["token"]
    )


def overlaps(spans: list[Span]) -> list[tuple[Span, Span]]:
    """The pairs of spans in which one resource was run by two processes at one moment."""
    assert spans, "no worker told what it runs: its words are no longer those read here"
    found = list[tuple[Span, Span]]()
    spans = sorted(spans, key=lambda span: (span.resource, span.begin_ms))
    for before, after in itertools.pairwise(spans):
        if before.resource == after.resource and after.begin_ms < before.end_ms:
            found.append((before, after))
    return found


def cut(spans: list[Span], pid: int, at_ms: float) -> list[Span]:
    """The spans as they were if a process did nothing any more from a moment on."""
    return [
        span._replace(end_ms=min(span.end_ms, at_ms)) if span.pid == pid else span
        for span in spans
        if span.pid != pid or span.begin_ms <= at_ms
    ]


def wall_ms() -> int:
    """The clock of the workers' records."""
    return time.time_ns() // 1_000_000
