"""What a cluster answers, as tables: Connect's documents, and ours for groups and workers."""

from collections import Counter

from .documents import Document, document, documents, inner, is_list, text
from .moments import moment
from .printing import Facts, Section, Table
from .words import short_form, worker_name

REASON_CHARACTERS = 60


def connectors(found: object) -> list[Section]:
    """Return the table of `/connectors?expand=status&expand=info`."""
    rows = [_connector_row(name, entry) for name, entry in sorted(document(found).items())]
    columns = ("NAME", "TYPE", "STATE", "WORKER", "TASKS", "CLASS")
    return [Table(columns, rows, "no connectors: add one with `fairlead create -f FILE`")]


def tasks(found: object) -> list[Section]:
    """Return the table of tasks; see `task_list`."""
    rows = [
        (
            f"{text(each, 'connector')}-{text(each, 'task')}",
            text(each, "state"),
            worker_name(text(each, "worker_id")),
            _reason(_why(each)),
        )
        for each in documents(found)
    ]
    return [Table(("TASK", "STATE", "WORKER", "REASON"), rows, "no tasks")]


def _why(status: object) -> str:
    """Return why something failed, or what it waits for."""
    return text(status, "trace") or text(status, "reason")


def task_list(found: object) -> list[dict[str, object]]:
    """Return the tasks of all connectors of `/connectors?expand=status`, one document each."""
    listed: list[dict[str, object]] = []
    for name, entry in sorted(document(found).items()):
        for task in documents(inner(entry, "status", "tasks")):
            rest = {key: value for key, value in task.items() if key != "id"}
            listed.append({"connector": name, "task": task.get("id"), **rest})
    return listed


def workers(found: object) -> list[Section]:
    """Return the table of `/workers`."""
    columns = ("NAME", "PROCESS", "MEMBER", "EPOCH", "CONNECTORS", "TASKS", "PID", "RESTARTS")
    return [Table(columns, [_worker_row(each) for each in listed(found, "workers")], "no workers")]


def groups(found: object) -> list[Section]:
    """Return the table of `/groups`."""
    rows = [
        (
            text(each, "group_id"),
            text(each, "state"),
            text(each, "group_epoch"),
            text(each, "assignment_epoch"),
            text(each, "members"),
            text(each, "connectors"),
            f"{text(each, 'assigned')}/{text(each, 'configured')}",
        )
        for each in listed(found, "groups")
    ]
    columns = ("GROUP", "STATE", "EPOCH", "ASSIGNMENT", "MEMBERS", "CONNECTORS", "ASSIGNED")
    return [Table(columns, rows, "no groups")]


def plugins(found: object) -> list[Section]:
    """Return the table of `/connector-plugins`."""
    rows = [
        (
            text(each, "class").rpartition(".")[2],
            text(each, "type"),
            text(each, "version"),
            text(each, "delivery"),
            text(each, "class").rpartition(".")[0],
        )
        for each in documents(found)
    ]
    return [Table(("NAME", "TYPE", "VERSION", "DELIVERY", "MODULE"), rows, "no plugins")]


def connector(found: object) -> list[Section]:
    """Return a connector's info with its `status`, as Connect tells both."""
    status = inner(found, "status")
    config = document(inner(found, "config"))
    name = text(found, "name")
    parts = task_list({name: {"status": status}})
    traces = [
        (f"{text(each, 'connector')}-{text(each, 'task')}", text(each, "trace"))
        for each in parts
        if text(each, "trace")
    ]
    return [
        Facts(
            (
                ("Name", name),
                ("Type", text(found, "type")),
                ("State", text(status, "connector", "state")),
                ("Worker", worker_name(text(status, "connector", "worker_id"))),
                (
                    "Reason",
                    text(status, "connector", "trace") or text(status, "connector", "reason"),
                ),
            )
        ),
        Facts([(key, text(config, key)) for key in sorted(config)], "Config"),
        *tasks(parts),
        *([Facts(traces, "Failures")] if traces else []),
    ]


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
        ("Rack", text(member, "rack")),
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
        (
            "Parked",
            "; ".join(
                f"{text(each, 'id')} until {moment(inner(each, 'deadline_ms'))}" for each in parked
            ),
        ),
        ("Log end", text(found, "log_end")),
        ("Unknown records", text(found, "unknown_records").removeprefix("0")),
    )
    settings = document(inner(found, "config"))
    members = [_member_row(each) for each in documents(inner(found, "members"))]
    columns = ("MEMBER", "STATE", "EPOCH", "HOLDS", "GIVES UP", "MEMBER ID")
    sections: list[Section] = [Facts(facts)]
    if settings:
        sections.append(Facts([(key, text(settings, key)) for key in sorted(settings)], "Settings"))
    sections.append(Table(columns, members, "no members"))
    if losses := [_loss_row(each) for each in documents(inner(found, "losses"))]:
        headings = ("LOST WORKER", "CAUSE", "RESOURCES", "PARKED UNTIL")
        sections.append(Table(headings, losses, title="Losses"))
    return sections


def plugin(found: object) -> list[Section]:
    """Return one plugin with the `configs` that it takes."""
    rows = [
        (
            text(each, "name"),
            text(each, "type").lower(),
            "required" if inner(each, "required") is True else text(each, "default_value"),
            text(each, "documentation"),
        )
        for each in documents(inner(found, "configs"))
    ]
    facts = [(_heading(key), text(found, key)) for key in ("class", "type", "version", "delivery")]
    return [Facts(facts), Table(("KEY", "TYPE", "DEFAULT", "MEANING"), rows, "no keys")]


def status(found: object) -> list[Section]:
    """Return a cluster at a glance; see the verb for what the document holds."""
    doing = Counter(text(each, "state") for each in documents(inner(found, "tasks")))
    facts = (
        ("Cluster", text(found, "url")),
        ("Version", text(found, "version")),
        ("Health", text(found, "health", "status")),
        ("Detail", text(found, "health", "message")),
        ("Tasks", ", ".join(f"{count} {state}" for state, count in sorted(doing.items()))),
    )
    return [
        Facts(facts),
        *groups(inner(found, "groups")),
        *workers(inner(found, "workers")),
        *connectors(inner(found, "connectors")),
    ]


def listed(found: object, member: str) -> list[Document]:
    """Return the entries of a list, which may be wrapped in a document."""
    return documents(found if is_list(found) else inner(found, member))


def worker_label(found: Document) -> str:
    """Return the short name of a worker of `/workers`."""
    return text(found, "name") or worker_name(text(found, "worker_id"))


def _connector_row(name: str, entry: object) -> tuple[str, ...]:
    states = [text(each, "state") for each in documents(inner(entry, "status", "tasks"))]
    return (
        name,
        text(entry, "status", "type"),
        text(entry, "status", "connector", "state"),
        worker_name(text(entry, "status", "connector", "worker_id")),
        f"{states.count('RUNNING')}/{len(states)}",
        text(entry, "info", "config", "connector.class").rpartition(".")[2],
    )


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
        text(process, "pid"),
        text(process, "restarts"),
    )


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
        short_form(documents(inner(found, "assigned"))),
        short_form(documents(inner(found, "pending_revocation"))),
        text(found, "member_id"),
    )


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


def _reason(trace: str) -> str:
    line = next((each for each in trace.splitlines() if each.strip()), "")
    return line if len(line) <= REASON_CHARACTERS else line[: REASON_CHARACTERS - 1] + "…"


def _heading(member: str) -> str:
    return member.replace("_", " ").capitalize()
