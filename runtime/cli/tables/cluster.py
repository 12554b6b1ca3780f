"""What a cluster answers, as tables: Connect's documents, the list of groups, all at a glance."""

from collections import Counter

from rich.filesize import decimal

from ..command.documents import document, documents, inner, listed, text, texts
from ..command.durations import age
from ..command.phrases import worker_name
from ..command.printing import Facts, Section, Table
from .members import workers


def connectors(found: object) -> list[Section]:
    """Return the table of `/connectors?expand=status&expand=info`."""
    rows = [_connector_row(name, entry) for name, entry in sorted(document(found).items())]
    columns = ("NAME", "TYPE", "STATE", "WORKER", "TASKS", "CLASS", "REASON")
    empty = "no connectors: add one with `fairlead create -f FILE`"
    return [Table(columns, rows, empty, brief=("REASON",))]


def tasks(found: object) -> list[Section]:
    """Return the table of tasks; see `task_list`."""
    rows = [
        (
            f"{text(each, 'connector')}-{text(each, 'task')}",
            text(each, "state"),
            worker_name(text(each, "worker_id")),
            text(each, "progress", "rows_out"),
            text(each, "progress", "batches"),
            _lag(inner(each, "progress", "lag")),
            age(inner(each, "progress", "last_commit_ms")),
            _reason(each),
        )
        for each in documents(found)
    ]
    columns = ("TASK", "STATE", "WORKER", "ROWS", "BATCHES", "LAG", "LAST COMMIT", "REASON")
    return [Table(columns, rows, "no tasks", folded=("REASON",), brief=("REASON",))]


def task_list(found: object) -> list[dict[str, object]]:
    """Return the tasks of all connectors of `/connectors?expand=status`, one document each.

    With `expand=progress` each holds its `progress`.
    """
    listed: list[dict[str, object]] = []
    for name, entry in sorted(document(found).items()):
        progress = {
            each.get("id"): {key: value for key, value in each.items() if key != "id"}
            for each in documents(inner(entry, "progress", "tasks"))
        }
        for task in documents(inner(entry, "status", "tasks")):
            rest = {key: value for key, value in task.items() if key != "id"}
            number = task.get("id")
            told = {"progress": progress[number]} if number in progress else {}
            listed.append({"connector": name, "task": number, **rest, **told})
    return listed


def _lag(found: object) -> str:
    """Return what is left to read: bytes where there are any, else how many ranges."""
    ranges, size = inner(found, "ranges"), inner(found, "bytes")
    if not isinstance(ranges, int) or not isinstance(size, int):
        return ""
    return decimal(size) if size or not ranges else f"{ranges} ranges"


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
    warned = [
        (text(each, "group_id"), text(each, "warning"))
        for each in listed(found, "groups")
        if text(each, "warning")
    ]
    warnings = [Table(("GROUP", "WARNING"), warned, title="Warnings")] if warned else []
    return [Table(columns, rows, "no groups"), *warnings]


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


def assignors(found: object) -> list[Section]:
    """Return the tables of `/assignors`: which there are, and the process that runs them."""
    rows = [(text(each, "name"), text(each, "origin")) for each in listed(found, "assignors")]
    processes = [
        tuple(text(each, name) for name in ("pid", "state", "restarts", "detail"))
        for each in listed(found, "processes")
    ]
    return [
        Table(("NAME", "ORIGIN"), rows, "no assignors"),
        Table(("PROCESS", "STATE", "RESTARTS", "DETAIL"), processes, "no process is known"),
    ]


def connector(found: object) -> list[Section]:
    """Return a connector's info with its `status`, as Connect tells both."""
    status = inner(found, "status")
    config = document(inner(found, "config"))
    name = text(found, "name")
    parts = task_list({name: {"status": status, "progress": inner(found, "progress")}})
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
                *(("Warning", each) for each in texts(inner(found, "warnings"))),
            )
        ),
        Facts([(key, text(config, key)) for key in sorted(config)], "Config"),
        *tasks(parts),
        *([Facts(traces, "Failures")] if traces else []),
    ]


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
        *_troubles(found),
        *connectors(inner(found, "connectors")),
        *tasks(inner(found, "tasks")),
        *_warnings(inner(found, "connectors")),
    ]


def _troubles(found: object) -> list[Section]:
    """Return what keeps groups and workers from going on; nothing if nothing does."""
    of_groups = (
        (f"group {text(each, 'group_id')}", text(each, "assignor_error"))
        for each in listed(inner(found, "groups"), "groups")
    )
    of_workers = (
        (f"worker {text(each, 'name')}", text(each, "process", "detail"))
        for each in listed(inner(found, "workers"), "workers")
    )
    rows = [each for each in (*of_groups, *of_workers) if each[1]]
    return [Table(("TROUBLE", "REASON"), rows, title="Troubles")] if rows else []


def _warnings(found: object) -> list[Section]:
    """Return what is strange about the configs of connectors; nothing if nothing is."""
    rows = [
        (name, warning)
        for name, entry in sorted(document(found).items())
        for warning in texts(inner(entry, "status", "warnings"))
    ]
    return [Table(("CONNECTOR", "WARNING"), rows, title="Warnings")] if rows else []


def _connector_row(name: str, entry: object) -> tuple[str, ...]:
    states = [text(each, "state") for each in documents(inner(entry, "status", "tasks"))]
    return (
        name,
        text(entry, "status", "type"),
        text(entry, "status", "connector", "state"),
        worker_name(text(entry, "status", "connector", "worker_id")),
        f"{states.count('RUNNING')}/{len(states)}",
        text(entry, "info", "config", "connector.class").rpartition(".")[2],
        _reason(inner(entry, "status", "connector")),
    )


def _reason(status: object) -> str:
    """Return in a line why something failed, or what it waits for."""
    why = text(status, "trace") or text(status, "reason")
    return next((each for each in why.splitlines() if each.strip()), "")


def _heading(member: str) -> str:
    return member.replace("_", " ").capitalize()
