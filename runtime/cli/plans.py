"""A plan as tables: what is planned, what moves and for how long, and how the load changes."""

from collections.abc import Iterator
from typing import Final

from ...events.model import Cause, Why
from .documents import Document, documents, inner, text
from .log_words import cause_in_words
from .moments import moment
from .printing import Facts, Section, Table
from .words import NAMES_MAX, worker_name

_CAUSES: Final = {each.value: each for each in Why}
UNMEASURED: Final = "not measured yet"


def plan(found: object) -> list[Section]:
    """Return the sections of `/groups/{g}/plan`; the last one is the verdict."""
    return [
        Facts([*_facts(found)]),
        Table(
            ("RESOURCE", "FROM", "TO", "WHY", "EXPECTED DOWNTIME"),
            [*_changes(found)],
            "nothing moves, starts or stops",
            rigid=True,
        ),
        Table(
            ("WORKER", "CONNECTORS", "TASKS", "WEIGHT", "STAYS"),
            [_worker(each) for each in documents(inner(found, "workers"))],
            "no workers",
        ),
        Facts([*_left_out(found), ("Verdict", _verdict(found))]),
    ]


def _facts(found: object) -> Iterator[tuple[str, str]]:
    yield "Group", f"{text(found, 'group_id')}, {_state(found)}"
    yield "Assignor", text(found, "assignor")
    for each in documents(inner(found, "rounds")):
        causes = [_cause(cause) for cause in documents(inner(each, "causes"))]
        yield "Epoch", f"{', '.join(causes)}: {_round(each)}"
    for each in documents(inner(found, "splits")):
        yield "Tasks", _split(each)


def _state(found: object) -> str:
    state, epoch = text(found, "state"), text(found, "group_epoch")
    settled = "" if inner(found, "settled") is True else "; planned from where it comes to rest"
    return f"{state} at epoch {epoch}{settled}"


def _cause(each: Document) -> str:
    why, subject = text(each, "cause"), text(each, "subject")
    return cause_in_words(Cause(_CAUSES[why], subject)) if why in _CAUSES else f"{why} {subject}"


def _round(each: Document) -> str:
    told = {"moved": "move", "placed": "start", "retired": "stop"}
    counts = [f"{text(each, name)} {verb}" for name, verb in told.items() if inner(each, name)]
    return ", ".join(counts) or "nothing moves"


def _split(each: Document) -> str:
    connector, before, after = (text(each, name) for name in ("connector", "before", "after"))
    if before == after:
        return f"{connector} keeps {before}"
    most = ", if it makes as many as it may" if inner(each, "is_most") is True else ""
    return f"{connector} has {before}, will have {after}{most}"


def _changes(found: object) -> Iterator[tuple[str, ...]]:
    for each in documents(inner(found, "moves")):
        why = ", ".join(filter(None, (text(each, "reason"), text(each, "detail"))))
        yield text(each, "id"), _who(each, "giver"), _who(each, "taker"), why, _downtime(each)
    for each in documents(inner(found, "starts")):
        yield text(each, "id"), "", _who(each, "taker"), "starts", ""
    for each in documents(inner(found, "stops")):
        yield text(each, "id"), _who(each, "giver"), "", "stops", ""


def _who(each: Document, role: str) -> str:
    return worker_name(text(each, role, "worker"))


def _downtime(each: Document) -> str:
    expected = inner(each, "expected_downtime")
    if expected is None:
        return UNMEASURED
    median, p99 = (_seconds(inner(expected, name)) for name in ("median_ms", "p99_ms"))
    whose = "" if text(expected, "of") == "connector" else ", of all connectors"
    return f"{median}, p99 {p99} ({text(expected, 'measured')} measured{whose})"


def _seconds(milliseconds: object) -> str:
    return f"{milliseconds / 1000:.2f} s" if isinstance(milliseconds, int) else "?"


def _worker(each: Document) -> tuple[str, ...]:
    counts = (_before_after(each, name) for name in ("connectors", "tasks", "weight"))
    return worker_name(text(each, "worker")), *counts, text(each, "stays")


def _before_after(each: Document, name: str) -> str:
    before, after = (text(each, when, name) or "-" for when in ("before", "after"))
    return before if before == after else f"{before} > {after}"


def _left_out(found: object) -> Iterator[tuple[str, str]]:
    for left_out in _by_reason(found):
        yield "Unplaceable", left_out
    for each in documents(inner(found, "parked")):
        yield "Parked", f"{text(each, 'id')} until {moment(inner(each, 'deadline_ms'))}"


def _by_reason(found: object) -> Iterator[str]:
    sharing: dict[str, list[str]] = {}
    for each in documents(inner(found, "unplaceable")):
        sharing.setdefault(text(each, "reason"), []).append(text(each, "id"))
    for reason, ids in sharing.items():
        more = f" and {len(ids) - NAMES_MAX} more" if len(ids) > NAMES_MAX else ""
        yield f"{' '.join(ids[:NAMES_MAX])}{more}: {reason}"


def _verdict(found: object) -> str:
    moves, starts, stops, left_out = (
        len(documents(inner(found, name))) for name in ("moves", "starts", "stops", "unplaceable")
    )
    stays = inner(found, "stays")
    total = moves + (stays if isinstance(stays, int) else 0)
    told = [f"{moves} of {total} resources move, {text(found, 'stays')} stay"]
    told += [f"{count} {verb}" for count, verb in ((starts, "start"), (stops, "stop")) if count]
    if left_out:
        told.append(f"{left_out} can not be placed")
    handovers = inner(found, "handovers")
    if isinstance(handovers, int) and handovers > moves:
        told.append(f"{handovers} hand-overs on the way")
    return "; ".join(told)
