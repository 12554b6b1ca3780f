"""The command `import`: it shows a plan, and with --yes carries it out.

The plan asks both sides and changes nothing. What is unchanged in it is moved, one connector after
the other, and a file records each step, so that the same command goes on after whatever has ended
it. With --back the plan is the record, and connectors go the other way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from ...replies.node import ServerInfo
from ..adapters.parameters import Argument, Ended, Option
from ..output.layout import TableLayout
from ..output.printing import (
    FAILED,
    Failed,
    Misused,
    Output,
    Section,
    Unreachable,
    say,
    say_aside,
    show,
    show_sections,
)
from ..output.progress import show_progress
from ..requests.client import Client, find_client
from ..requests.options import RemoteReadOptions, with_options
from ..requests.waiting import parse_duration
from .connect_rest import ConnectClass, ConnectEntry, ConnectRest, ConnectVersion
from .moving import ConnectorMover, ImportOutcome
from .old_connect import KeptConfigs, OldConnectSide, cannot_stop
from .plan import ImportCandidate, ImportPlan, ImportPlanner, choose, fetch_classes_here
from .properties import BothProperties, PropertyDifference, fetch_settings, read_properties
from .record import ImportRecord, RecordHead, locate_record
from .sides import ConnectSide, NodeSide
from .steps import CannotGoOn, ImportStep

EXAMINED_SECONDS: Final = 10.0
"""How much longer than usual the node may take to answer: a plugin is asked about its config."""


@dataclass(frozen=True, slots=True)
class ImportOptions(RemoteReadOptions):
    """A cluster, and a Kafka Connect whose connectors are imported into it."""

    source: Annotated[
        str,
        Option(
            "--from",
            metavar="URL",
            help="The REST interface of a worker of Connect; a user may stand in it.",
        ),
    ] = ""
    worker_config: Annotated[
        Path | None,
        Option(
            "--worker-config",
            metavar="FILE",
            help="The .properties file of its workers: REST does not show what they hand down.",
        ),
    ] = None
    yes: Annotated[bool, Option("--yes", "-y", help="Do what the plan says.")] = False
    back: Annotated[bool, Option("--back", help="Return what was imported to Kafka Connect.")] = (
        False
    )
    timeout: Annotated[
        str,
        Option("--timeout", metavar="TIME", help="How long each step may take: 90s, 10m or 2h."),
    ] = "3m"
    accept_differences: Annotated[
        bool,
        Option(
            "--accept-differences",
            help="Also import what inherits other converters or providers here.",
        ),
    ] = False
    accept_idle: Annotated[
        bool,
        Option(
            "--accept-idle",
            help="What runs for the time and commits nothing has come: it has nothing to read.",
        ),
    ] = False
    delete_there: Annotated[
        bool,
        Option(
            "--delete-there",
            help="Of a Connect before 3.5, which stops none: delete them, keep their configs.",
        ),
    ] = False
    record: Annotated[
        Path | None,
        Option(
            "--record",
            metavar="FILE",
            help="The file that records the steps; default: one below ~/.local/state/fairlead.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class OpenImport:
    """Both sides of an import, and its record."""

    client: Client
    rest: ConnectRest
    server: ConnectVersion
    properties: BothProperties
    record: ImportRecord
    entries: dict[str, ConnectEntry]
    """The connectors of Connect."""
    there: ConnectSide
    here: NodeSide

    def select(self, names: Sequence[str] | None) -> dict[str, ConnectEntry]:
        """Return the connectors that are named, or all; raises `Failed`."""
        if missing := [each for each in names or () if each not in self.entries]:
            there = ", ".join(self.entries) or "none"
            told = f"{self.rest.name} has no connector {', '.join(missing)}; it has: {there}"
            raise Failed(f"{told}; nothing was changed")
        return {each: self.entries[each] for each in names or self.entries}


@with_options(ImportOptions)
def import_connectors(
    options: ImportOptions,
    names: Annotated[
        list[str] | None,
        Argument(metavar="[CONNECTOR]...", help="Connectors of Kafka Connect; default: all."),
    ] = None,
) -> None:
    """Import the connectors of a running Kafka Connect, one after the other, or return them.

    Without --yes only the plan is shown. Each connector is stopped there, created here, and watched
    until it has committed an offset here; else it is started there again. It is stopped there
    afterwards, and not deleted. What ends before its end goes on by the same command.
    """
    patience_ms = parse_duration(options.timeout)
    opened = _open(options)
    chosen = opened.select(names)
    if options.back:
        _return_connectors(options, opened, chosen, patience_ms)
        return
    plan = _plan(options, opened, chosen)
    if not options.yes:
        show(options.output, plan, tabulate_plan(plan))
        if options.output is Output.TABLE:
            _advise(options, plan)
        return
    able, others = choose(plan.connectors, names or ())
    with opened.record.writing():
        mover = _make_mover(options, opened, patience_ms)
        outcomes, problems = _move_each([each.name for each in able], opened, mover.bring)
    for each in others:
        problems.append(f"connector {each.name} was left there: {'; '.join(each.remarks)}")
    problems += [
        f"connector {each.name} was returned: {each.reason}"
        for each in outcomes
        if each.step is ImportStep.RETURNED
    ]
    _conclude(options, outcomes, problems)


def _open(options: ImportOptions) -> OpenImport:
    """Ask both sides who they are; raises `Failed`, `Misused`, `Unreachable`."""
    if not options.source or options.worker_config is None:
        raise Misused("--from URL and --worker-config FILE say what is imported")
    theirs = read_properties(options.worker_config)
    client, rest = find_client(options), ConnectRest(options.source, options.tls_files())
    client.answer_seconds += EXAMINED_SECONDS
    server = rest.get(ConnectVersion)
    if server.fairlead_version:
        raise Misused(
            f"{rest.name} is a node of fairlead, and no Kafka Connect: name one by --from"
        )
    properties = BothProperties(theirs, fetch_settings(client))
    cluster = client.get(ServerInfo).kafka_cluster_id
    head = RecordHead(f"{properties.group}@{server.kafka_cluster_id}", cluster)
    record = ImportRecord(options.record or locate_record(head), head)
    listed = rest.get(dict[str, ConnectEntry], "connectors", query="?expand=info&expand=status")
    kept, here = KeptConfigs(record.path.with_suffix(".configs")), NodeSide(client)
    is_old = cannot_stop(rest, listed)
    entries = {**(kept.entries() if is_old else {}), **listed}
    there = OldConnectSide(rest, here, kept) if is_old else ConnectSide(rest)
    return OpenImport(
        client, rest, server, properties, record, dict(sorted(entries.items())), there, here
    )


def _plan(
    options: ImportOptions, opened: OpenImport, chosen: dict[str, ConnectEntry]
) -> ImportPlan:
    rest, client = opened.rest, opened.client
    planner = ImportPlanner(
        version=opened.server.version,
        classes_there=rest.get(list[ConnectClass], "connector-plugins"),
        classes_here=fetch_classes_here(client),
        there=opened.there,
        here=opened.here,
        properties=opened.properties,
        record=opened.record,
        accepts_differences=options.accept_differences,
        is_old=isinstance(opened.there, OldConnectSide),
        may_delete=options.delete_there,
    )
    planned: list[ImportCandidate] = []
    with show_progress(f"examining {len(chosen)} connectors", len(chosen)) as advance:
        for name, entry in chosen.items():
            planned.append(planner.plan(name, entry))
            advance(len(planned))
    differences = opened.properties.differences()
    path = str(opened.record.path)
    return ImportPlan(rest.name, opened.server.version, path, planned, differences)


def _advise(options: ImportOptions, plan: ImportPlan) -> None:
    if plan.differences:
        file = options.worker_config
        say_aside(f"`fairlead up --config {file}` starts a node with what the workers there have")
    count = sum(each.can_move for each in plan.connectors)
    told = f"with --yes those that are unchanged are moved, {count} of {len(plan.connectors)}"
    say_aside(f"nothing was changed: {told}")


def _return_connectors(
    options: ImportOptions, opened: OpenImport, chosen: dict[str, ConnectEntry], patience_ms: int
) -> None:
    """Return what was imported of the chosen ones, or show what would be."""
    places = opened.record.places
    imported = [each for each, at in places.items() if at.step is not ImportStep.RETURNED]
    names = [each for each in imported if each in chosen]
    for each in imported:
        if each not in opened.entries:
            say_aside(f"connector {each} is not in Kafka Connect any more, and is left as it is")
    if not options.yes:
        outcomes = [ImportOutcome(each, places[each].step, places[each].reason) for each in names]
        show(options.output, outcomes, [RETURNS.lay_out(outcomes)])
        if options.output is Output.TABLE and outcomes:
            say_aside("nothing was changed: with --yes they are returned")
        return
    with opened.record.writing():
        mover = _make_mover(options, opened, patience_ms)
        outcomes, problems = _move_each(names, opened, mover.take_back)
    _conclude(options, outcomes, problems)


def _make_mover(options: ImportOptions, opened: OpenImport, patience_ms: int) -> ConnectorMover:
    return ConnectorMover(
        opened.there,
        opened.here,
        opened.record,
        say if options.output is Output.TABLE else say_aside,
        patience_seconds=patience_ms / 1000,
        may_idle=options.accept_idle,
    )


def _move_each(
    names: Sequence[str],
    opened: OpenImport,
    move: Callable[[str, dict[str, str]], ImportOutcome],
) -> tuple[list[ImportOutcome], list[str]]:
    """Move connectors; one that cannot go on does not keep the others from it.

    Raises `Unreachable`.
    """
    outcomes: list[ImportOutcome] = []
    problems: list[str] = []
    with show_progress("connectors", len(names)) as advance:
        for done, name in enumerate(names, 1):
            try:
                outcomes.append(move(name, opened.entries[name].config()))
            except Unreachable:
                raise
            except (CannotGoOn, Failed) as error:
                problems.append(f"connector {name}: {error}")
                outcomes.append(ImportOutcome(name, opened.record.place(name).step, str(error)))
            advance(done)
    return outcomes, problems


def _conclude(
    options: ImportOptions, outcomes: Sequence[ImportOutcome], problems: Sequence[str]
) -> None:
    """Show what has become of connectors; ends the verb with 1 if something has failed."""
    if options.output is Output.TABLE:
        show_sections([RETURNS.lay_out(outcomes)])
    else:
        show(options.output, outcomes, ())
    for each in problems:
        say_aside(each)
    if problems:
        raise Ended(FAILED)


def tabulate_plan(plan: ImportPlan) -> list[Section]:
    """Return the tables of a plan."""
    return [PLAN.lay_out(plan.connectors), DIFFERENCES.lay_out(plan.differences)]


def _shorten(class_name: str) -> str:
    """Return a class by its alias, as configs may name it."""
    return class_name.rpartition(".")[2].removesuffix("Connector")


PLAN: Final = TableLayout(
    ImportCandidate,
    "CONNECTOR: name, CLASS: connector_class, VERSION: version, THERE: state, HERE: way,"
    " REMARKS: remarks",
    {"CLASS": _shorten, "REMARKS": "; ".join},
    empty="there are no connectors",
    folded=("REMARKS",),
)
DIFFERENCES: Final = TableLayout(
    PropertyDifference,
    "KEY: key, THERE: there, HERE: here, MEANING: meaning",
    empty="the properties of the workers there and those of the node agree",
    title="Properties that connectors inherit",
    folded=("MEANING",),
)
RETURNS: Final = TableLayout(
    ImportOutcome,
    "CONNECTOR: name, STEP: step, REASON: reason",
    empty="nothing of it was imported",
    folded=("REASON",),
)
