"""The command `log`: it reads a group's logs on disk, without a running cluster."""

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated, Final

from ......events.entries.codec import restore
from ......events.entries.history import read_summary
from ......events.group import Group
from ......events.log.errors import LogError, NoLogError
from ......events.log.probe import probe
from ......events.log.tables import LogKind
from ......events.model import Resource
from ......projections.explain.diff import Owner, TargetChange, Transfer
from ......projections.explain.epochs import EpochReading
from ......projections.explain.lists import CompactedHistory
from ......projections.explain.reader import read_all
from ......projections.shard_history import GroupEntries
from ....replies.building.clients import read_shares
from ....replies.building.groups import describe_group
from ....replies.epochs import summarize_epoch
from ...adapters.parameters import Argument, Option
from ...logs.folder import (
    GroupFolder,
    GroupReader,
    LogName,
    follow_entries,
    iterate_entries,
    make_printer,
)
from ...output.member_names import MemberNames
from ...output.phrases import (
    format_count,
    format_resource_set,
    format_seconds,
    format_time,
)
from ...output.printing import Failed, Output, Table, say, show
from ...output.progress import show_progress
from ...requests.names import OfGroup
from ...requests.options import LocalOptions, LocalReadOptions, select_group, with_options
from ...tables.groups import tabulate_group
from .compact import compact
from .publish import publish
from .withdraw import withdraw

INDENT: Final = "    "
REPORTED: Final = ("low", "end", "entries", "commits", "keys")


@with_options(LocalReadOptions)
def show_log(
    options: LocalReadOptions,
    group: OfGroup = None,
    start: Annotated[
        int | None,
        Option("--from", metavar="OFFSET", min=0, help="Begin at this offset, not at the oldest."),
    ] = None,
    limit: Annotated[
        int | None, Option("--limit", metavar="N", min=1, help="Stop after N records.")
    ] = None,
    offsets: Annotated[
        bool, Option("--offsets", help="Show the log of offsets and commits instead.")
    ] = False,
    follow: Annotated[
        bool, Option("--follow", help="Continue with new records until Ctrl-C.")
    ] = False,
) -> None:
    """Print a log, one record per line: offset, time, kind and content.

    With -o json each line is one whole record, with -o yaml each document.
    """
    folder = GroupFolder(select_group(options, group))
    with folder.read(LogName.OFFSETS if offsets else LogName.CONTROL) as reader:
        entries = (follow_entries if follow else iterate_entries)(
            reader, reader.low() if start is None else start
        )
        printer = make_printer(options.output, reader)
        try:
            for entry in islice(entries, limit):
                printer(entry)
        except KeyboardInterrupt:  # the normal end of `--follow`
            return


@with_options(LocalReadOptions)
def tell_story(
    options: LocalReadOptions,
    group: OfGroup = None,
    start: Annotated[
        int | None, Option("--from", metavar="EPOCH", min=0, help="Begin at this epoch.")
    ] = None,
    until: Annotated[
        int | None, Option("--until", metavar="EPOCH", min=0, help="End with this epoch.")
    ] = None,
) -> None:
    """Show for each group epoch its cause, the user, and what moved, stayed and waits."""
    with GroupFolder(select_group(options, group)).read(LogName.CONTROL) as reader:
        summary = read_summary(reader.trimmed().summary)
        readings = [*read_all(reader, read_shares)]
    first_epoch = readings[0].report.group_epoch if readings else None
    readings = [
        each
        for each in readings
        if (start is None or each.report.group_epoch >= start)
        and (until is None or each.report.group_epoch <= until)
    ]
    if options.output is Output.TABLE:
        if summary is not None:
            say(CompactedHistory.of(summary).describe_gap(first_epoch))
        for reading in readings:
            for line in tell(reading):
                say(line)
    else:
        show(options.output, [summarize_epoch(each.report) for each in readings], ())


@with_options(LocalReadOptions)
def verify(options: LocalReadOptions) -> None:
    """Check every entry, commit and key of both logs, in a separate process.

    The shared logs of the groups of Kafka's clients are checked as well.
    """
    folder = GroupFolder(options)
    logs = [(name.value, folder.locate(name), folder.group_id, name.kind) for name in LogName]
    of_shards = [
        (f"shard {each.name} {name.value}", each / name.value, None, name.shared)
        for each in folder.shards()
        for name in LogName
    ]
    reports: list[dict[str, object]] = []
    with show_progress("logs checked", len(logs) + len(of_shards)) as advance:
        for each in (*logs, *of_shards):
            reports.append(_verify(*each))
            advance(len(reports))
    rows = [
        (str(each["log"]), str(each["state"]), *(str(each.get(name, "")) for name in REPORTED))
        for each in reports
    ]
    columns = ("LOG", "STATE", *(name.upper() for name in REPORTED))
    show(options.output, reports, [Table(columns, rows)])
    if flaws := [str(each["error"]) for each in reports if "error" in each]:
        raise Failed("\n".join(flaws))


@with_options(LocalOptions)
def backup(
    options: LocalOptions,
    target: Annotated[Path, Argument(metavar="DEST", help="A new folder.", show_default=False)],
    shards: Annotated[
        bool,
        Option("--shards", help="Copy the logs of the groups of Kafka's clients instead."),
    ] = False,
) -> None:
    """Copy both logs to a new folder and check the copy; the node may run meanwhile.

    To restore, stop the node and replace the folder of the group, or of the shards, with the copy.
    Sinks that were written to since the backup refuse it: move the files that are newer than the
    backup out of them, or their rows come twice, and set sink.adopt=true on their connectors.
    """
    folder = GroupFolder(options)
    if shards:
        with show_progress("copying and checking"):
            count = len(folder.back_up_shards(target))
        say(f"the logs of {format_count(count, 'shard')} backed up to {target}")
        return
    with show_progress("copying and checking"):
        done = folder.back_up(target)
    say(f"{' and '.join(done)} of group {folder.group_id} backed up to {target}")


@with_options(LocalReadOptions)
def replay(
    options: LocalReadOptions,
    group: OfGroup = None,
    until: Annotated[
        int | None,
        Option("--until", metavar="OFFSET", min=0, help="Stop before this offset."),
    ] = None,
) -> None:
    """Build the group from its log, as it is now or as it was at an offset."""
    folder = GroupFolder(select_group(options, group))
    with folder.read(LogName.CONTROL) as reader:
        shard = int(reader.path.parent.name) if isinstance(reader, GroupEntries) else None
        then = describe_group(_fold(reader, folder.group_id, until), shard)
    show(options.output, then, tabulate_group(then))


def _verify(name: str, path: Path, log_id: str | None, kind: LogKind) -> dict[str, object]:
    head: dict[str, object] = {"log": name}
    try:
        report = probe(path, log_id, kind)
    except LogError as error:
        state = "missing" if isinstance(error, NoLogError) else "unsound"
        return {**head, "state": state, "error": str(error)}
    return {**head, "state": "sound", **report._asdict()}


def _fold(reader: GroupReader, group_id: str, until: int | None) -> Group:
    """Build the group from its whole history, or from its latest values if that was trimmed."""
    low, end = reader.low(), reader.end()
    if until is None and low:
        return restore(group_id, *reader.load())
    stop = end if until is None else until
    if low or stop > end:
        summary = read_summary(reader.trimmed().summary)
        compacted = "" if summary is None else f"; {CompactedHistory.of(summary)}"
        raise Failed(
            f"the log holds the offsets from {low} to {end}: a replay that stops at"
            f" {stop} needs all of them up to there, from 0 on{compacted}"
        )
    before = takewhile(lambda each: each.offset < stop, iterate_entries(reader, 0))
    return restore(group_id, before, stop)


def tell(reading: EpochReading) -> Iterator[str]:
    """Yield the lines of one epoch; the first has its cause."""
    report, names = reading.report, MemberNames(reading.clients)
    bump, change, generation = report.bump, report.target_change, report.generation
    asked = f" (asked by {bump.actor})" if bump.actor else ""
    cause = names.format_cause(bump.cause.why.value, bump.cause.subject)
    yield f"epoch {bump.group_epoch}  {format_time(bump.time_ms)}  {cause}{asked}"
    for attempt in report.attempts:
        yield f"{INDENT}failed at {format_time(attempt.time_ms)}: {_first_line(attempt.error)}"
    if generation is not None:
        yield f"{INDENT}generation of {generation.summary}"
        took = format_seconds(report.took_ms)
        yield f"{INDENT}{f'assigned after {took}' if took else 'not assigned'}"
    elif change is not None:
        by = f" at {names.of(change.computed_by)}" if change.computed_by else ""
        assignor = f", {change.assignor}{by}" if change.assignor else ""
        yield (
            f"{INDENT}answered by assignment epoch {change.assignment_epoch}"
            f" after {format_seconds(report.took_ms)}{assignor}"
        )
    else:
        yield f"{INDENT}not answered"
    if change is not None and change.assignment_epoch == bump.group_epoch:
        yield from (INDENT + line for line in _changes(change, names))


def _changes(change: TargetChange, names: MemberNames) -> Iterator[str]:
    """Yield the changes of a target, only at the last of the epochs that it answers."""
    yield from _transfers("moved", change.moved, names)
    yield from _transfers("returned", change.returned, names)
    yield from _transfers("placed", change.placed, names)
    for due in sorted(set(change.parked.values())):
        parked = (each for each, until in change.parked.items() if until == due)
        yield f"parked    {format_resource_set(parked)} until {format_time(due)}"
    if change.next_moves_at_ms is not None:
        yield f"more      moves at {format_time(change.next_moves_at_ms)}"
    for giver in sorted(set(change.displaced.values())):
        stopped = (each for each, had in change.displaced.items() if had == giver)
        yield f"stopped   {format_resource_set(stopped)} at {names.of(giver)}"
    for resource in sorted(change.unplaceable):
        yield f"left out  {resource}: {_first_line(change.unplaceable[resource])}"
    if change.retired:
        yield f"retired   {format_resource_set(change.retired)}"
    shares = ", ".join(f"{names.of(seat)} {len(change.kept[seat])}" for seat in sorted(change.kept))
    yield f"kept      {change.kept_count}{f' ({shares})' if shares else ''}"
    if change.settled_ms is not None:
        yield f"settled   {format_seconds(max(0, change.settled_ms - change.time_ms))} later"


def _transfers(word: str, transfers: Iterable[Transfer], names: MemberNames) -> Iterator[str]:
    """Yield one line for each pair of old and new owner."""
    ways: dict[tuple[Owner | None, Owner], list[Resource]] = {}
    for resource, giver, taker in transfers:
        ways.setdefault((giver, taker), []).append(resource)
    for (giver, taker), resources in ways.items():
        way = f"{names.of(giver)} -> {names.of(taker)}" if giver else f"at {names.of(taker)}"
        yield f"{word:<8}  {format_resource_set(resources)} {way}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


VERBS: Final = {
    "show": show_log,
    "story": tell_story,
    "verify": verify,
    "backup": backup,
    "compact": compact,
    "publish": publish,
    "withdraw": withdraw,
    "replay": replay,
}
"""The verbs of `fairlead log`."""
