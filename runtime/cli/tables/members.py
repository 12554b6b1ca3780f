"""Workers, and the group that they are members of, as tables."""

from collections.abc import Sequence

from ..command.documents import Document, document, documents, inner, listed, text, texts
from ..command.durations import moment
from ..command.phrases import short_form, worker_name
from ..command.printing import Facts, Section, Table


def workers(found: object) -> list[Section]:
    """Return the table of `/workers`."""
    told = listed(found, "workers")
    traits, cells = _traits([inner(each, "member") for each in told])
    columns = ("NAME", "PROCESS", "MEMBER", "EPOCH", "CONNECTORS", "TASKS", *traits)
    rows = [
        (*_worker_row(each), *own, *_process_row(each))
        for each, own in zip(told, cells, strict=True)
    ]
    return [Table((*columns, "PID", "RESTARTS"), rows, "no workers")]


def worker(found: object) -> list[Section]:
    """Return one entry of `/workers`: the process, and the member that it is once it joined."""
    member, process = inner(found, "member"), inner(found, "process")
    worker_facts = (
        ("Name", worker_label(document(found))),
        ("Worker", text(found, "worker_id")),
        ("Group", text(found, "group_id")),
        ("Process", text(process, "state")),
        ("Process id", text(process, "pid")),
        ("Restarts", text(process, "restarts")),
        ("Detail", text(process, "detail")),
        ("Order", _order(document(found))),
    )
    member_facts = (
        ("State", text(member, "state")),
        ("Epoch", text(member, "member_epoch")),
        ("Holds", short_form(documents(inner(member, "assigned")))),
        ("Gives up", short_form(documents(inner(member, "pending_revocation")))),
        ("Target", short_form(documents(inner(member, "target")))),
        ("Member id", text(member, "member_id")),
        ("Zone", text(member, "rack")),
        ("Tags", _tags(member)),
        ("Capacity", text(member, "capacity")),
    )
    return [Facts(worker_facts), *([Facts(member_facts, "Member")] if member else [])]


def group(found: object) -> list[Section]:
    """Return `/groups/{g}`, which is also what a replay of its log tells."""
    last = inner(found, "last_rebalance")
    target = inner(found, "target")
    parked = documents(inner(found, "parked"))
    facts = (
        ("Group", text(found, "group_id")),
        ("State", text(found, "state")),
        ("Group epoch", text(found, "group_epoch")),
        ("Assignment epoch", text(found, "assignment_epoch")),
        ("Last rebalance", _bump(last)),
        ("Assignor", text(target, "assignor")),
        ("Assignor's error", text(target, "error")),
        ("Configured", short_form(documents(inner(found, "configured")))),
        ("Unassigned", short_form(documents(inner(found, "unassigned")))),
        ("Kept for who is away", short_form(documents(inner(found, "awaited")))),
        (
            "Parked",
            "; ".join(
                f"{text(each, 'id')} until {moment(inner(each, 'deadline_ms'))}" for each in parked
            ),
        ),
        ("More moves", moment(inner(found, "next_moves_at_ms"))),
        ("Log end", text(found, "log_end")),
        ("Unknown records", text(found, "unknown_records").removeprefix("0")),
        ("Warning", text(found, "warning")),
    )
    settings = document(inner(found, "config"))
    sections: list[Section] = [Facts(facts)]
    if settings:
        sections.append(Facts([(key, text(settings, key)) for key in sorted(settings)], "Settings"))
    sections.append(_members(documents(inner(found, "members"))))
    if left_out := _unplaceable_rows(target):
        sections.append(Table(("UNPLACEABLE", "REASON"), left_out, title="Unplaceable"))
    if losses := [_loss_row(each) for each in documents(inner(found, "losses"))]:
        headings = ("LOST WORKER", "CAUSE", "RESOURCES", "PARKED UNTIL")
        sections.append(Table(headings, losses, title="Losses"))
    return sections


def worker_label(found: Document) -> str:
    """Return the short name of a worker of `/workers`."""
    return text(found, "name") or worker_name(text(found, "worker_id"))


def _worker_row(found: Document) -> tuple[str, ...]:
    member, process = inner(found, "member"), inner(found, "process")
    held = [inner(each, "task") for each in documents(inner(member, "assigned"))]
    return (
        worker_label(found),
        text(process, "state"),
        ",".join(filter(None, (text(member, "state"), _order(found)))),
        text(member, "member_epoch"),
        str(held.count(None)) if member else "",
        str(len(held) - held.count(None)) if member else "",
    )


def _process_row(found: Document) -> tuple[str, ...]:
    process = inner(found, "process")
    return text(process, "pid"), text(process, "restarts")


def _members(found: Sequence[Document]) -> Table:
    traits, cells = _traits(found)
    columns = ("MEMBER", "STATE", "EPOCH", *traits, "HOLDS", "GIVES UP", "MEMBER ID")
    rows = [
        (*_member_row(each), *own, *_held_row(each)) for each, own in zip(found, cells, strict=True)
    ]
    return Table(columns, rows, "no members")


def _traits(members: Sequence[object]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the headings and the cells of what sets workers apart, where anything does."""
    told = {
        "ZONE": [text(each, "rack") for each in members],
        "TAGS": [_tags(each) for each in members],
        "CAP": [text(each, "capacity") for each in members],
    }
    usual = {"ZONE": {""}, "TAGS": {""}, "CAP": {"", "1"}}
    shown = {each: cells for each, cells in told.items() if not usual[each].issuperset(cells)}
    return tuple(shown), [[cells[row] for cells in shown.values()] for row in range(len(members))]


def _tags(member: object) -> str:
    return ",".join(texts(inner(member, "tags")))


def _order(found: Document) -> str:
    """Return what operators want of a worker, in a word."""
    order = inner(found, "order")
    said = {"removing": "removing", "draining": "draining", "cordoned": "cordoned"}
    return next((word for key, word in said.items() if inner(order, key)), "")


def _member_row(found: Document) -> tuple[str, ...]:
    return (
        worker_name(text(found, "worker_id")),
        text(found, "state"),
        text(found, "member_epoch"),
    )


def _held_row(found: Document) -> tuple[str, ...]:
    return (
        short_form(documents(inner(found, "assigned"))),
        short_form(documents(inner(found, "pending_revocation"))),
        text(found, "member_id"),
    )


def _unplaceable_rows(target: object) -> list[tuple[str, str]]:
    left_out = documents(inner(target, "unplaceable"))
    return [(text(each, "id"), text(each, "reason")) for each in left_out]


def _loss_row(found: Document) -> tuple[str, ...]:
    return (
        worker_name(text(found, "worker_id")),
        text(found, "cause"),
        short_form(documents(inner(found, "resources"))),
        moment(inner(found, "deadline_ms")),
    )


def _bump(found: object) -> str:
    told = f"{text(found, 'cause')} {worker_name(text(found, 'subject'))}".strip()
    when = moment(inner(found, "time_ms"))
    return f"{told}, {when}" if told and when else told
