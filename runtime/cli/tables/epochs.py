"""What a log tells of a group's epochs, as tables: the list of them, and one in full."""

from collections.abc import Iterator
from typing import Final

from ....events.model import Cause, Why
from ..command.documents import Document, document, documents, inner, text, texts
from ..command.durations import moment
from ..command.phrases import NAMES_MAX
from ..command.printing import Facts, Section, Table
from ..log.narrator import cause_in_words, member_name

_COUNTS: Final = {"NEW": "placed", "KEPT": "kept", "PARKED": "parked", "LEFT OUT": "unplaceable"}
"""What is counted of each epoch besides what moved, by the headings."""
_USUAL: Final = {"NEW", "KEPT"}
"""Those that are shown in any case: the others only where there is anything."""
_CAUSES: Final = {each.value: each for each in Why}
DELETED: Final = "deleted"
NOBODY: Final = "nobody"
"""Stands for the taker of what stopped because no worker may run it."""


def history(found: object) -> list[Section]:
    """Return the table of `/groups/{g}/history`."""
    last = text(found, "last_epoch")
    epochs = documents(inner(found, "epochs"))
    told = {heading: [text(each, name) for each in epochs] for heading, name in _COUNTS.items()}
    counts = {
        heading: cells
        for heading, cells in told.items()
        if heading in _USUAL or not {"", "0"}.issuperset(cells)
    }
    columns = ("EPOCH", "TIME", "CAUSE", "BY", "MOVED", *counts, "SETTLED")
    rows = [
        (*_line(each), *(cells[row] for cells in counts.values()), _settled(each, last))
        for row, each in enumerate(epochs)
    ]
    empty = "no epochs: nobody has joined the group yet"
    sections: list[Section] = [Table(columns, rows, empty, folded=("CAUSE", "BY"))]
    if inner(found, "is_trimmed") is True:
        sections.append(Facts([("Trimmed", _trimmed(found))]))
    return sections


def _trimmed(found: object) -> str:
    first = text(found, "first_epoch")
    if not first:
        return "the log tells of no epoch any more"
    return f"what was before epoch {first} is not in the log any more"


def _line(each: Document) -> tuple[str, ...]:
    """Return what an epoch was, and how much moved."""
    moved = [inner(each, name) for name in ("moved", "returned")]
    total = sum(count for count in moved if isinstance(count, int))
    counted = inner(each, "moved") is not None
    return (
        text(each, "group_epoch"),
        _to_the_second(inner(each, "time_ms")),
        _cause(each),
        text(each, "actor"),
        str(total) if counted else "",
    )


def _to_the_second(time_ms: object) -> str:
    whole, point, _ = moment(time_ms).partition(".")
    return f"{whole}Z" if point else whole


def _settled(each: Document, last: str) -> str:
    """Return how long an epoch took, or which later one took it along."""
    answered_by = text(each, "assignment_epoch")
    if not answered_by:
        return "unanswered"
    if answered_by != text(each, "group_epoch"):
        return f"with {answered_by}"
    unsettled = "not yet" if answered_by == last else "overtaken"
    return _seconds(inner(each, "settled_after_ms")) or unsettled


def explained(found: object) -> list[Section]:
    """Return the sections of `/groups/{g}/explain/{epoch}`."""
    sections: list[Section] = [Facts(list(_facts(document(found))))]
    phases = [
        (text(each, "phase"), _seconds(inner(each, "took_ms")), text(each, "note"))
        for each in documents(inner(found, "phases"))
    ]
    total = ("total", _seconds(inner(found, "total_ms")), "")
    sections.append(Table(("PHASE", "TOOK", "NOTE"), [*phases, total]))
    rows = [_handover(each) for each in documents(inner(found, "handovers"))]
    columns = ("RESOURCE", "REASON", "FROM", "TO", "DOWN")
    sections.append(Table(columns, rows, "nothing moved", rigid=True))
    if waits := [_wait(each) for each in documents(inner(found, "waits"))]:
        sections.append(Table(("AWAY", "SINCE", "UNTIL", "KEPT FOR IT"), waits, title="Waits"))
    return sections


def _wait(each: Document) -> tuple[str, ...]:
    """Return for whose return something waited, and what came of it."""
    until, later = moment(inner(each, "until_ms")), text(each, "superseded_by")
    came = "it was back" if inner(each, "is_back") else "others were given it"
    came = f"goes on in {later}" if later else came
    kept = texts(inner(each, "resources"))
    more = f" and {len(kept) - NAMES_MAX} more" if len(kept) > NAMES_MAX else ""
    return (
        _who(inner(each, "seat")),
        moment(inner(each, "since_ms")),
        f"{until}, {came}" if until else "it waits still",
        " ".join(kept[:NAMES_MAX]) + more,
    )


def _facts(found: Document) -> Iterator[tuple[str, str]]:
    change = inner(found, "target_change")
    yield "Epoch", text(found, "group_epoch")
    yield "Time", moment(inner(found, "time_ms"))
    yield "Cause", _cause(found)
    yield "Changed", text(found, "changed")
    yield "Asked by", text(found, "actor")
    yield "Warning", text(found, "warning")
    for each in documents(inner(found, "attempts")):
        failed = text(each, "error").strip().partition("\n")[0]
        yield "Failed", f"{moment(inner(each, 'time_ms'))}: {failed}"
    if change is None:
        yield "Target", "none"
        return
    yield "Target", f"assignment epoch {text(change, 'assignment_epoch')}"
    yield "Assignor", text(change, "assignor")
    yield "Computed by", _who(inner(change, "computed_by")) or "the coordinator"
    yield "Kept", _kept(change)
    for due, parked in _by("deadline_ms", inner(change, "parked")):
        yield "Parked", f"{parked} until {moment(due)}"
    if inner(change, "next_moves_at_ms"):
        yield "More moves", f"at {moment(inner(change, 'next_moves_at_ms'))}"
    for reason, left_out in _by("reason", inner(change, "unplaceable")):
        yield "Left out", f"{left_out}: {reason}"


def _by(name: str, found: object) -> Iterator[tuple[object, str]]:
    """Yield what resources have in common, and those that have it."""
    sharing: dict[object, list[str]] = {}
    for each in documents(found):
        sharing.setdefault(each.get(name), []).append(text(each, "id"))
    for common, ids in sharing.items():
        more = f" and {len(ids) - NAMES_MAX} more" if len(ids) > NAMES_MAX else ""
        yield common, " ".join(ids[:NAMES_MAX]) + more


def _kept(change: object) -> str:
    shares: list[tuple[str, int]] = []
    for each in documents(inner(change, "kept")):
        resources = inner(each, "resources")
        count = len(resources) if isinstance(resources, list) else 0  # pyright: ignore[reportUnknownArgumentType]
        shares.append((_who(inner(each, "seat")), count))
    told = ", ".join(f"{who} {count}" for who, count in shares)
    return f"{sum(count for _, count in shares)}{f' ({told})' if told else ''}"


def _handover(each: Document) -> tuple[str, ...]:
    details = (text(each, "reason"), text(each, "detail"))
    superseded = text(each, "superseded_by")
    taker = _who(inner(each, "to"))
    if not taker and text(each, "reason") != DELETED:
        taker = NOBODY
    return (
        text(each, "id"),
        ", ".join(filter(None, details)),
        _who(inner(each, "from")),
        f"{taker}, superseded by {superseded}" if superseded else taker,
        _down(each),
    )


def _down(each: Document) -> str:
    """Return for how long nobody ran a resource, as far as the log tells."""
    if freed_by := text(each, "freed_by"):
        return f"see {freed_by}"
    exactly = _seconds(inner(each, "downtime_ms"))
    at_least = _seconds(inner(each, "downtime_at_least_ms"))
    at_most = _seconds(inner(each, "downtime_at_most_ms"))
    if exactly or not at_least:
        return exactly
    return f"{at_least} to {at_most}" if at_most else f"at least {at_least}"


def _cause(each: Document) -> str:
    why, subject = text(each, "cause"), text(each, "subject")
    if why in _CAUSES:
        return cause_in_words(Cause(_CAUSES[why], subject))
    return f"{why} {subject}".rstrip()


def _who(seat: object) -> str:
    return "" if seat is None else member_name(text(seat, "worker"), text(seat, "member_id"))


def _seconds(milliseconds: object) -> str:
    return f"{milliseconds / 1000:.3f} s" if isinstance(milliseconds, int) else ""
