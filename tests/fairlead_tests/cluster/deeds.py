"""The work of workers with the no-op engine, from their lines in the node's log."""

import itertools
import re
import time
from typing import NamedTuple

DEED = re.compile(
    r"(?P<day>\S+ \d\d:\d\d:\d\d),(?P<ms>\d{3}) INFO (?P<pid>\d+) "
    r"\S+\.runner: (?P<verb>runs|ends) (?P<resource>\S+) under (?P<token>\S+)"
)


class Deed(NamedTuple):
    """A log line of a worker: it has started or stopped a resource."""

    at_ms: int
    pid: int
    is_begin: bool
    resource: str
    token: str


class Span(NamedTuple):
    """The time span in which a process ran a resource; without an end if it logged none."""

    begin_ms: int
    end_ms: float
    pid: int
    resource: str


def deeds_in(log: str) -> list[Deed]:
    """Read the log lines in order."""
    return [_deed(match) for match in DEED.finditer(log)]


def spans_of(deeds: list[Deed]) -> list[Span]:
    """Return the spans in which each process ran each resource."""
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
    """Return the pairs of overlapping spans of one resource."""
    assert spans, "no worker told what it runs: its words are no longer those read here"
    found = list[tuple[Span, Span]]()
    spans = sorted(spans, key=lambda span: (span.resource, span.begin_ms))
    for before, after in itertools.pairwise(spans):
        if before.resource == after.resource and after.begin_ms < before.end_ms:
            found.append((before, after))
    return found


def cut(spans: list[Span], pid: int, at_ms: float) -> list[Span]:
    """Return the spans with an end where a process was killed."""
    return [
        span._replace(end_ms=min(span.end_ms, at_ms)) if span.pid == pid else span
        for span in spans
        if span.pid != pid or span.begin_ms <= at_ms
    ]


def wall_ms() -> int:
    """Return the time of the clock in the workers' log lines."""
    return time.time_ns() // 1_000_000
