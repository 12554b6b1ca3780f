"""The pages of `docs/reference`, as the code has them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rest.conftest import service_over

from fairlead.actors.messages.errors import MEANINGS
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.processes import (
    PHASES,
    ListenerMetrics,
    RequestMetrics,
    WorkerMetrics,
)
from fairlead.projections.metrics.shards import ShardFigures
from fairlead.runtime.config.keys import SETTINGS
from fairlead.runtime.interfaces.cli.catalogue import VERBS
from fairlead.runtime.interfaces.cli.main import load_verb
from fairlead.runtime.interfaces.rest.app import SUBJECTS, make_app
from fairlead.runtime.interfaces.rest.server.permissions import Reach
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import Definition
from fairlead.runtime.pipeline.transforms.types import (
    find_predicate,
    find_transform,
    predicate_names,
    transform_names,
)
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway

SEVERAL = 8
"""An option that so many verbs have is explained once."""
FOOT = "This page is written from the code by `pytest tests/pages --rewrite-samples`."
BUILT_IN = (
    "source.type=dead-letters",
    "source.type=dead-letter-topic",
    *(f"{end}.type={name}" for end in ("source", "sink") for name in ("jdbc", "kafka", "postgres")),
    "sink.type=connect",
)
FILES = {"Source": "source.type=files", "Sink": "sink.type=files"}
OF_ALL = "All connectors"
KeyRow = tuple[str, str, str, str]
"""Name, type, default, and what it means."""
KEY_HEADS = ("key", "type", "default", "meaning")
REACHES = {
    Reach.NODE: "refused",
    Reach.CONNECTOR: "own",
    Reach.NEW_CONNECTOR: "own names",
    Reach.BODY: "own names",
    Reach.VISIBLE: "filtered",
    Reach.NEUTRAL: "whole",
}
LIMITS = """* *own*: any other connector is unknown to it (404), whether there is one or not.
* *own names*: a connector of another name is refused (403), whether there is one or not.
* *filtered*: the answer leaves out other connectors.
* *whole*: the answer names no connector.
* *refused* (403): the call is about the whole node."""
"""What a call is to a caller who is limited to some connectors."""


# -- keys and settings


def key_tables() -> dict[str, list[KeyRow]]:
    """Return the keys of connectors' configs, by what has them."""
    tables: dict[str, list[KeyRow]] = {OF_ALL: []}
    keys = SparkPipeline.config()
    for key in (*keys.definitions, *keys.families):
        ends = [FILES[each] for each in FILES if key.name.startswith(f"{each.lower()}.")]
        section = ends[0] if ends and not key.name.endswith(".type") else OF_ALL
        tables.setdefault(section, []).append(_key_row(key))
    optional = SparkPipeline.optional_keys()
    tables |= {each: [_key_row(key) for key in optional[each]] for each in BUILT_IN}
    return tables | dict(_transform_tables())


def _key_row(key: Definition) -> KeyRow:
    usual = "required" if key.required else key.default_text or ""
    return key.name, key.type.value.lower(), usual, key.documentation


def _transform_tables() -> Iterator[tuple[str, list[KeyRow]]]:
    for title, names, find in (
        ("Transforms", transform_names(), find_transform),
        ("Predicates", predicate_names(), find_predicate),
    ):
        rows: list[KeyRow] = []
        for name in sorted(names):
            if not (kind := find(name)).__module__.startswith("fairlead.runtime."):
                continue
            config = kind.config()
            for key in (*config.definitions, *config.families):
                full, shape, usual, meaning = _key_row(key)
                rows.append((f"{title.lower()}.NAME.{full}", shape, usual, f"`{name}`: {meaning}"))
        yield title, rows


def setting_rows() -> list[KeyRow]:
    """Return the settings of a node."""
    return [
        (name, each.type.value.lower(), str(each.default), each.documentation)
        for name, each in SETTINGS.items()
    ]


def _key_cells(row: KeyRow) -> list[str]:
    name, shape, usual, meaning = row
    shown = repr(usual)[1:-1] if usual.strip() != usual or not usual.isprintable() else usual
    return [f"`{name}`", shape, f"`{shown}`" if shown else "", meaning]


def connector_keys_page() -> str:
    parts = [
        f"""# Connector keys

Every key of a connector's config, by the type of source, sink or transform that has it.

`fairlead explain KEY` shows one of them, and `fairlead describe plugin TYPE --search WORD`
searches. {FOOT}
"""
    ]
    for title, rows in key_tables().items():
        parts += [f"\n## {title}\n\n", _table(KEY_HEADS, map(_key_cells, sorted(rows)))]
    return "".join(parts)


def settings_page() -> str:
    head = f"""# Settings

Every setting of a node, with its default.

[Nodes](../operating/nodes.md#settings-of-a-node) says where a setting comes from;
`fairlead config` shows the values of a node. {FOOT}

"""
    return head + _table(KEY_HEADS, map(_key_cells, sorted(setting_rows())))


# -- the command line


def cli_page() -> str:
    sections = [*_verbs()]
    counts = Counter(record for _, _, command in sections for record in _records(command))
    common = [each for each, count in counts.items() if count >= SEVERAL and each[0][0] == "-"]
    parts = [
        f"""# Command line

Every verb with its arguments and options.

[The command line](../operating/command-line.md) says what the verbs have in common. {FOOT}

## Options of many verbs

""",
        _option_table(common),
    ]
    panel = ""
    for title, name, command in sections:
        if title != panel:
            parts.append(f"\n## {title}\n")
            panel = title
        parts += _verb_parts(name, command, common)
    return "".join(parts)


def _verbs() -> Iterator[tuple[str, str, click.Command]]:
    """Yield each verb, and those below it, with its part of the help."""
    for name, verb in VERBS.items():
        command = load_verb(name)
        for words, each in _with_verbs_below(name, command):
            yield verb.panel.value, words, each


def _with_verbs_below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for each, below in command.commands.items():
            yield from _with_verbs_below(f"{name} {each}", below)


def _records(command: click.Command) -> list[tuple[str, str]]:
    context = click.Context(command)
    return [record for each in command.params if (record := each.get_help_record(context))]


def _verb_parts(
    name: str, command: click.Command, common: Sequence[tuple[str, str]]
) -> Iterator[str]:
    pieces = command.collect_usage_pieces(click.Context(command))
    usage = " ".join(["fairlead", name, *pieces])
    yield f"\n### {name}\n\n`{usage}`\n\n{command.help}\n"
    records = _records(command)
    if own := [each for each in records if each not in common]:
        yield "\n" + _option_table(own)
    if others := [each[0].split(" ")[0].rstrip(",") for each in records if each in common]:
        yield f"\nAlso {', '.join(f'`{each}`' for each in others)}.\n"


def _option_table(records: Iterable[tuple[str, str]]) -> str:
    rows = [[f"`{name}`", meaning] for name, meaning in records]
    return _table(("argument or option", "meaning"), rows)


# -- errors, metrics, REST


def errors_page() -> str:
    head = f"""# Errors

Every error of the protocol: its number on the wire, what helps against it, and what to do.

[ERRORS.md](../../actors/ERRORS.md) explains some of them. What the first word of a task's reason
means is on [another page](../connectors/life.md#errors). {FOOT}

* *retriable*: the same request may succeed after a while.
* *rejoin*: stop everything, then join with the same member id and epoch 0.
* *fatal*: nothing helps until somebody changes something.

"""
    rows = [
        [f"`{error.value}`", str(code), remedy.value, advice]
        for error, (code, remedy, advice) in sorted(MEANINGS.items(), key=lambda item: item[1].code)
    ]
    return head + _table(("error", "code", "helps", "what to do"), rows)


def metrics_page() -> str:
    head = f"""# Metrics

Every metric of `/metrics`, for Prometheus.

[METRICS.md](../../projections/METRICS.md) says what they are computed from,
[another page](../operating/kafka-metrics.md) what stands beside Kafka's;
[monitoring](../operating/monitoring.md) has queries. {FOOT}

"""
    rows = [[f"`{name}`", kind, meaning] for name, (kind, meaning) in sorted(metrics().items())]
    return head + _table(("metric", "type", "meaning"), rows)


def metrics() -> dict[str, tuple[str, str]]:
    """Return the type and the meaning of each metric, but for those of the process."""
    with TemporaryDirectory() as folder:
        worker, listener = WorkerMetrics(Path(folder), "w1"), ListenerMetrics(Path(folder))
        listener.tell_certificate_end(1.0)
        worker.observe_batch(dict.fromkeys(PHASES, 1.0))
        worker.count_lane("arrow", 1, 1)
        listener.count_request("JoinGroup")
        listener.count_refusal("length")
        listener.count_failed_authentication("PLAIN")
        listener.count_denial("JoinGroup")
        shard = ShardFigures(0, {}, {}, {}, {})
        exposition = Exposition("0", RequestMetrics(), Path(folder), has_tasks=True)
        text, _ = exposition.write("text/plain", [], shards=[shard])
        worker.close()
        listener.close()
    found: dict[str, tuple[str, str]] = {}
    for name, meaning, kind in re.findall(
        r"^# HELP (fairlead_\w+) (.*)\n# TYPE \1 (\w+)$", text.decode(), re.MULTILINE
    ):
        found[name] = kind, meaning
    return found


def rest_page() -> str:
    parts = [
        f"""# REST

Every call of the REST API.

[The REST API](../operating/rest.md) says what the calls have in common; `/openapi.json` has the
types of what they take and answer. {FOOT}

The right that a call needs is that of a [role](../operating/access.md#roles): viewers may view,
operators operate, admins administer, too. The last column says what a call is to a role that is for
some connectors alone:

{LIMITS}
"""
    ]
    rights = {
        f"{each.method} {each.path_format}": each.rights for subject in SUBJECTS for each in subject
    }
    by_tag: dict[str, list[list[str]]] = {}
    for path, method, operation in operations():
        told = operation["description"].partition("\n\n")[0]
        asked = [
            f"`{each['name']}`" for each in operation.get("parameters", ()) if each["in"] == "query"
        ]
        for tag in operation["tags"]:
            call = f"{method.upper()} {path}"
            needs, reach = rights[call].needs, rights[call].reach
            right = needs.value if needs else "none"
            row = [f"`{call}`", told, ", ".join(asked), right, REACHES[reach] if needs else ""]
            by_tag.setdefault(tag, []).append(row)
    for tag, rows in sorted(by_tag.items()):
        title = f"\n## {tag[0].upper()}{tag[1:]}\n\n"
        heads = ("call", "what it does", "query", "right", "limited")
        parts += [title, _table(heads, sorted(rows))]
    return "".join(parts)


def operations() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, method and description of each call."""
    with TemporaryDirectory() as folder:
        service = service_over(Path(folder), FakeGateway(None))
        document = Client(make_app(service)).get("/openapi.json").json()
        service.logs.close()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


# -- pages


REFERENCE_PAGES: Mapping[str, Callable[[], str]] = {
    "settings": settings_page,
    "connector-keys": connector_keys_page,
    "cli": cli_page,
    "errors": errors_page,
    "metrics": metrics_page,
    "rest": rest_page,
}


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_cell(each) for each in row] for row in rows)]
    return (
        "".join(f"| {' | '.join(line)} |\n" for line in lines)
        .replace("| --- ", "|---")
        .replace("|--- |", "|---|")
    )


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
