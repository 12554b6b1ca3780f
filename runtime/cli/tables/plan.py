"""A plan as tables: what is planned, what moves and for how long, and how the load changes."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ....events.model import Cause, Why
from ..command.documents import Document, documents, inner, text, texts
from ..command.durations import moment
from ..command.phrases import NAMES_MAX, worker_name
from ..command.printing import Facts, Section, Table
from ..log.narrator import cause_in_words, member_name

_CAUSES: Final = {each.value: each for each in Why}
UNMEASURED: Final = "not measured yet"
ROUND: Final = {
    "moved": "move",
    "placed": "start",
    "retired": "stop",
    "displaced": "find no place any more",
}
"""What becomes of so many resources in a round."""


def plan(found: object) -> list[Section]:
    """Return the sections of `/groups/{g}/plan`; the last one is the verdict."""
    names = _Names(found)
    return [
        Facts([*_facts(found)]),
        Table(
            ("RESOURCE", "FROM", "TO", "WHY", "EXPECTED DOWNTIME"),
            [*_changes(found, names)],
            "nothing moves, starts or stops",
            rigid=True,
        ),
        Table(
            ("WORKER", "CONNECTORS", "TASKS", "WEIGHT", "STAYS"),
            [_worker(each, names) for each in documents(inner(found, "workers"))],
            "no workers",
        ),
        Facts([*_left_out(found, names), ("Verdict", _verdict(found))]),
    ]


def _facts(found: object) -> Iterator[tuple[str, str]]:
    yield "Group", f"{text(found, 'group_id')}, {_state(found)}"
    yield "Assignor", text(found, "assignor")
    for each in documents(inner(found, "rounds")):
        causes = [_cause(cause) for cause in documents(inner(each, "causes"))]
        yield "Epoch", f"{', '.join(causes)}: {_round(each)}"
    left_out = {text(each, "id") for each in documents(inner(found, "unplaceable"))}
    for each in documents(inner(found, "splits")):
        yield "Tasks", _split(each, is_run=text(each, "connector") not in left_out)


def _state(found: object) -> str:
    state, epoch = text(found, "state"), text(found, "group_epoch")
    settled = "" if inner(found, "settled") is True else "; planned from where it comes to rest"
    return f"{state} at epoch {epoch}{settled}"


def _cause(each: Document) -> str:
    why, subject = text(each, "cause"), text(each, "subject")
    return cause_in_words(Cause(_CAUSES[why], subject)) if why in _CAUSES else f"{why} {subject}"


def _round(each: Document) -> str:
    counts = [f"{text(each, name)} {verb}" for name, verb in ROUND.items() if inner(each, name)]
    return ", ".join(counts) or "nothing moves"


def _split(each: Document, *, is_run: bool) -> str:
    connector, before, after = (text(each, name) for name in ("connector", "before", "after"))
    if not is_run:
        return f"{connector} keeps {before} until a worker runs it: only then it splits anew"
    anew = "; what stays starts anew where it is" if inner(each, "restarts") else ""
    if before == after:
        return f"{connector} keeps {before}{anew}"
    most = ", if it makes as many as it may" if inner(each, "is_most") is True else ""
    return f"{connector} has {before}, will have {after}{most}{anew}"


class _Names:
    """How the workers of a plan are called: those of one name with their member ids."""

    def __init__(self, found: object) -> None:
        workers = documents(inner(found, "workers"))
        self._seats = Counter(worker_name(text(each, "worker")) for each in workers)

    def of(self, seat: object) -> str:
        """Return what a seat is called, nothing for none."""
        url = text(seat, "worker")
        name = worker_name(url)
        return member_name(url, text(seat, "member_id")) if self._seats[name] > 1 else name


def _changes(found: object, names: _Names) -> Iterator[tuple[str, ...]]:
    for each in documents(inner(found, "moves")):
        why = ", ".join(filter(None, (text(each, "reason"), text(each, "detail"))))
        who = (names.of(inner(each, role)) for role in ("giver", "taker"))
        yield text(each, "id"), *who, why, _downtime(each)
    for each in documents(inner(found, "starts")):
        yield text(each, "id"), "", names.of(inner(each, "taker")), "starts", ""
    for each in documents(inner(found, "stops")):
        yield text(each, "id"), names.of(inner(each, "giver")), "", "stops", ""


def _downtime(each: Document) -> str:
    expected = inner(each, "expected_downtime")
    if expected is None:
        return UNMEASURED
    median, p99 = (_seconds(inner(expected, name)) for name in ("median_ms", "p99_ms"))
    whose = "" if text(expected, "of") == "connector" else ", of all connectors"
    return f"{median}, p99 {p99} ({text(expected, 'measured')} measured{whose})"


def _seconds(milliseconds: object) -> str:
    return f"{milliseconds / 1000:.2f} s" if isinstance(milliseconds, int) else "?"


def _worker(each: Document, names: _Names) -> tuple[str, ...]:
    counts = (_before_after(each, name) for name in ("connectors", "tasks", "weight"))
    return names.of(each), *counts, text(each, "stays")


def _before_after(each: Document, name: str) -> str:
    before, after = (text(each, when, name) or "-" for when in ("before", "after"))
    return before if before == after else f"{before} > {after}"


def _left_out(found: object, names: _Names) -> Iterator[tuple[str, str]]:
    cold = [names.of(each) for each in documents(inner(found, "cold"))]
    if cold:
        yield "Not warm yet", f"{' '.join(cold)}: what they will take then is not in this plan"
    for warning in texts(inner(found, "warnings")):
        yield "Warning", warning
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
    total = moves + stops + (stays if isinstance(stays, int) else 0)
    told = [f"{moves} of {total} resources move, {text(found, 'stays')} stay"]
    counts = (inner(each, "restarts") for each in documents(inner(found, "splits")))
    if restarts := sum(count for count in counts if isinstance(count, int)):
        told.append(f"{restarts} of these start anew")
    told += [f"{count} {verb}" for count, verb in ((starts, "start"), (stops, "stop")) if count]
    if left_out:
        told.append(f"{left_out} cannot be placed")
    handovers = inner(found, "handovers")
    if isinstance(handovers, int) and handovers > moves:
        told.append(f"{handovers} hand-overs on the way")
    return "; ".join(told)
