"""The verb `log compact`: it trims the history of control logs.

The process of a group does so on a running node, between requests, and this command waits for it.
On a node that is down the command does it itself, and makes the files of the logs smaller as well,
for which it needs them for itself. With --dry-run it only reads, and the node may run.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote

from ......events.entries.compaction import Compactor, CutFinder
from ......events.entries.history import HistorySummary, read_summary, summarizer
from ......events.entries.retention import Retention
from ......events.log.errors import LogError, NoLogError
from ......events.log.files import data_bytes
from ......events.log.frame import Entry
from ......events.log.reader import LogReader
from ......events.log.writer import GroupLog, shrink_log
from ......projections.explain.lists import CompactedHistory, EpochList
from ....replies.groups import GroupCompaction, GroupSummary
from ...adapters.parameters import Argument, Option
from ...logs.folder import GroupFolder, LogName
from ...output.printing import Failed, Misused, Table, show
from ...output.progress import show_progress
from ...requests.client import Client, find_client
from ...requests.names import find_group_id
from ...requests.options import LocalOptions, RemoteReadOptions, select_group, with_options

DAY_MS: Final = 86_400_000
LOOK_SECONDS: Final = 0.2
"""The pause between two questions to a running node."""
GROUP: Final = Argument(metavar="[GROUP]", help="A group other than the node's.")


class LogPlace(NamedTuple):
    """A log of a data folder: its name for people, its folder, its id, and whose it is."""

    name: str
    path: Path
    kind: LogName
    is_shared: bool

    @property
    def is_control(self) -> bool:
        """Whether it has a history; the offset log is only made smaller."""
        return self.kind is LogName.CONTROL


@dataclass(frozen=True, slots=True)
class CompactOptions(RemoteReadOptions):
    """A cluster, or a node on this machine that is down, and how much history its logs keep."""

    keep_days: Annotated[
        int | None,
        Option("--keep-days", metavar="N", min=1, help="Keep N days; else log.retention.ms."),
    ] = None
    keep_epochs: Annotated[
        int | None,
        Option(
            "--keep-epochs", metavar="N", min=1, help="Keep N epochs; else log.retention.epochs."
        ),
    ] = None
    keep_bytes: Annotated[
        int | None,
        Option("--keep-bytes", metavar="N", min=1, help="Keep N bytes; else log.retention.bytes."),
    ] = None

    def retention(self, settings: Retention) -> Retention:
        """Return how much history is kept: as the options say, or else the settings of the node."""
        return settings.with_limits(self.keep_ms, self.keep_epochs, self.keep_bytes)

    @property
    def keep_ms(self) -> int | None:
        """How long history is kept, in milliseconds; None: as the settings say."""
        return None if self.keep_days is None else self.keep_days * DAY_MS


@with_options(CompactOptions)
def compact(
    options: CompactOptions,
    group: Annotated[str | None, GROUP] = None,
    every: Annotated[
        bool, Option("--all", help="All groups, and the shards of Kafka's clients.")
    ] = False,
    dry_run: Annotated[
        bool, Option(help="Only show what would be done; the node may run.")
    ] = False,
) -> None:
    """Sum up the old history of groups; on a node that is down, make the files smaller as well.

    States, offsets and the latest value of everything stay; `history` says what was summed up. A
    running node does it between its requests, and goes on by itself if this command is ended. It
    reuses the space that is freed in its files.
    """
    if dry_run and (options.url or options.context):
        raise Misused("--dry-run reads the logs of this machine: leave out --url and --context")
    if not dry_run and options.find_address() is not None:
        _compact_running(options, group, every=every)
        return
    config = options.load_config()
    retention = options.retention(config.retention())
    places = [*find_logs(options, group, every=every)]
    if dry_run:
        _show(options, *_treat(places, _describe, retention), is_plan=True)
        return
    with stopped_node(config.data_path) as is_stopped:
        if is_stopped:
            _show(options, *_treat(places, _compact, retention), is_plan=False)
    if not is_stopped:
        _compact_running(options, group, every=every)


def _show(
    options: CompactOptions, done: list[dict[str, Any]], failures: list[str], *, is_plan: bool
) -> None:
    show(options.output, done, [_tabulate(done, is_plan=is_plan)])
    if failures:
        raise Failed("\n".join(failures))


def _compact_running(options: CompactOptions, group: str | None, *, every: bool) -> None:
    """Compact the history of one group of a running node, or of all its groups of workers."""
    client = find_client(options)
    if every:
        groups = client.get(list[GroupSummary], "groups")
        names = [each.group_id for each in groups if each.type == "connect"]
    else:
        names = [find_group_id(options, client, group)]
    done = [_await_compaction(client, options, each) for each in names]
    columns = ("LOG", "TRIMMED", "HISTORY")
    rows = [(each["log"], str(each["trimmed"]), each["history"] or "") for each in done]
    show(options.output, done, [Table(columns, rows, folded=("HISTORY",))])


def _await_compaction(client: Client, options: CompactOptions, group: str) -> dict[str, Any]:
    """Ask a group to compact its history, and return what it did; raises `Failed`."""
    path = ("groups", group, "compaction")
    limits = {
        "keep_ms": options.keep_ms,
        "keep_epochs": options.keep_epochs,
        "keep_bytes": options.keep_bytes,
    }
    query = {name: str(limit) for name, limit in limits.items() if limit is not None}
    with show_progress(f"compacting the history of {group}"):
        state = client.put(GroupCompaction, *path, **query)
        while state.state == "running":
            time.sleep(LOOK_SECONDS)
            state = client.get(GroupCompaction, *path)
    if state.state != "done":
        why = state.message or "the process of the group was started again"
        raise Failed(
            f"the history of {group} was compacted in part only: {why}. Nothing is lost; the same"
            " command does the rest"
        )
    compacted = client.get(EpochList, "groups", group, "history", limit="1").compacted
    told = None if compacted is None else str(compacted)
    return {"log": f"{group} control", "trimmed": state.trimmed, "history": told}


@contextmanager
def stopped_node(data_path: Path) -> Generator[bool]:
    """Keep the node of a data folder from starting, and yield True; False if it runs."""
    from .....cluster.data_version import (  # noqa: PLC0415  # they are slow
        NewerDataError,
        require_known_data,
    )
    from .....cluster.run_folder import NodeRunsError, RunFolder  # noqa: PLC0415

    folder = RunFolder(data_path)
    try:
        require_known_data(data_path)
        folder.claim()
    except NewerDataError as error:
        raise Failed(str(error)) from None
    except NodeRunsError:
        yield False
        return
    try:
        yield True
    finally:
        folder.release()


def _treat(
    places: Sequence[LogPlace],
    treat: Callable[[LogPlace, Retention, int], dict[str, Any]],
    retention: Retention,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what was done to each log, and the errors of the others."""
    done, failures = list[dict[str, Any]](), list[str]()
    for place in places:
        try:
            found = treat(place, retention, time.time_ns() // 1_000_000)
            done.append({"log": place.name, **found})
        except LogError as error:
            failures.append(f"{place.name}: {error}")
    return done, failures


def find_logs(options: LocalOptions, group: str | None, *, every: bool) -> Iterator[LogPlace]:
    """Yield the logs of one group, or of every one and of the shards; raises `NoLogError`."""
    folder = GroupFolder(select_group(options, group))
    if not every:
        if not folder.locate(LogName.CONTROL).is_dir():
            folder.open(LogName.CONTROL)  # raises
        yield from _logs(folder.group_id, folder.path, is_shared=False)
        return
    groups = folder.path.parent
    if not groups.is_dir():
        raise NoLogError(f"there are no logs at {groups}: or is it another --data-dir?")
    for path in sorted(each for each in groups.iterdir() if each.is_dir()):
        yield from _logs(unquote(path.name), path, is_shared=False)
    for path in folder.shards():
        yield from _logs(f"shard {path.name}", path, is_shared=True)


def _logs(name: str, path: Path, *, is_shared: bool) -> Iterator[LogPlace]:
    for kind in LogName:
        if (path / kind.value).is_dir():
            yield LogPlace(f"{name} {kind.value}", path / kind.value, kind, is_shared)


def _compact(place: LogPlace, retention: Retention, now_ms: int) -> dict[str, Any]:
    """Trim a log and make its file smaller; return what was done."""
    with LogReader.open(place.path) as reader:
        log_id, low = reader.log_id, reader.low()
    if place.is_control:
        with GroupLog.open_writer(place.path, log_id) as log:
            compactor = Compactor(log, retention, is_shared=place.is_shared)
            while compactor.step(now_ms):
                pass
    shrunk = shrink_log(place.path)
    with LogReader.open(place.path) as reader:
        trimmed = reader.trimmed()
    done = {"trimmed": trimmed.low - low, "bytes_before": shrunk.before, "bytes": shrunk.after}
    return {**done, **_summary(place, read_summary(trimmed.summary))}


def _describe(place: LogPlace, retention: Retention, now_ms: int) -> dict[str, Any]:
    """Return what compaction would do to a log, and what its history would be summed up to."""
    with LogReader.open(place.path) as reader:
        low, packed = reader.trimmed()
        cut = low
        if place.is_control:
            finder = CutFinder(reader, retention, is_shared=place.is_shared)
            while finder.read(now_ms):
                pass
            cut = max(low, finder.cut)
        summarize = summarizer(now_ms, is_shared=place.is_shared)
        for entries in _until(reader, low, cut):
            packed = summarize(packed, entries)
    return {
        "trimmed": cut - low,
        "bytes_before": data_bytes(place.path),
        **_summary(place, read_summary(packed)),
    }


def _until(reader: LogReader, low: int, cut: int) -> Iterator[list[Entry]]:
    for entries in reader.tail(low):
        if part := [*takewhile(lambda each: each.offset < cut, entries)]:
            yield part
        if len(part) < len(entries):
            return


def _summary(place: LogPlace, summary: HistorySummary | None) -> dict[str, Any]:
    if summary is None or not place.is_control:
        return {"history": None}
    return {"history": str(CompactedHistory.of(summary))}


def _tabulate(done: list[dict[str, Any]], *, is_plan: bool) -> Table:
    columns = ("LOG", "WOULD TRIM" if is_plan else "TRIMMED", "BYTES", "NOW", "HISTORY")
    rows = [
        (
            str(each["log"]),
            str(each["trimmed"]),
            str(each["bytes_before"]),
            str(each.get("bytes", "")),
            each["history"] or "",
        )
        for each in done
    ]
    return Table(columns, rows, folded=("HISTORY",))
