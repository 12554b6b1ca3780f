"""The commands `logs` and `log-level`: what the processes of a node write of themselves.

The files of all processes are merged in the order of their entries' times, and read on as they
grow; the options say which entries are printed, and how. Those of another machine come from its
REST interface, which leaves out what the caller may not see.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final

from ...node_logs.entries import EntryChoice, Level, LogEntry
from ...node_logs.files import LogFilesError, LogFolderReader
from ...replies.node import LogPage
from ..adapters.parameters import Argument, Option
from ..output.printing import Failed, format_json, say, say_aside
from ..requests.client import Client, find_client
from ..requests.grammar import Kind, parse_task, split_words
from ..requests.names import complete_names, name_argument
from ..requests.options import RemoteOptions, with_options
from ..requests.waiting import parse_duration
from .top import MEASURED

LOOK_SECONDS: Final = 0.5
"""The time between two looks for new entries."""
WAIT_MS: Final = 20_000
"""How long a node waits for new entries before it answers."""
MOST_ENTRIES: Final = 10_000
"""How many entries a node answers with at most."""


class EntryFormat(StrEnum):
    """The output formats of log entries."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogOptions(RemoteOptions):
    """A node, and which lines of its log files are printed, and how."""

    follow: Annotated[
        bool, Option("--follow", "-f", help="Continue with new lines until Ctrl-C.")
    ] = False
    tail: Annotated[
        int | None,
        Option("--tail", metavar="N", min=0, help="Only the last entries, and those that follow."),
    ] = None
    since: Annotated[
        str | None,
        Option("--since", metavar="TIME", help="Only of the last 90s, 10m or 2h."),
    ] = None
    level: Annotated[
        Level | None,
        Option("--level", case_sensitive=False, help="Only of this level, and of graver ones."),
    ] = None
    prefix: Annotated[
        bool, Option("--prefix", help="Begin each line with the name of its file.")
    ] = False
    output: Annotated[
        EntryFormat, Option("--output", "-o", help="As it is written, or an object of JSON a line.")
    ] = EntryFormat.TEXT


@with_options(LogOptions)
def logs(
    options: LogOptions,
    words: Annotated[
        list[str] | None,
        name_argument(MEASURED, " of what the lines are about, all without one", may_be_all=True),
    ] = None,
) -> None:
    """Print the log files of a node, in the order of their times; here also of one that has ended.

    Without --url and --context they are those of this machine, if no cluster is set for all verbs.
    """
    names = split_words("logs", words or [], MEASURED, may_be_all=True).names
    as_shown = [str((parse_task(each) if "/" in each else None) or each) for each in names]
    age_ms = None if options.since is None else parse_duration(options.since)
    batches = (
        _read_files(options, as_shown, age_ms)
        if options.find_address() is None
        else _ask_node(find_client(options), options, as_shown, age_ms)
    )
    try:
        for entries in batches:
            for entry in entries:
                _print_entry(entry, options)
            sys.stdout.flush()
            if not options.follow:
                return
    except LogFilesError as error:
        raise Failed(str(error)) from None
    except KeyboardInterrupt:  # the normal end of `--follow`
        return


def _read_files(
    options: LogOptions, names: list[str], age_ms: int | None
) -> Iterator[Iterable[LogEntry]]:
    """Yield the entries of this machine's files, then new ones, endlessly."""
    since = None if age_ms is None else timedelta(milliseconds=age_ms)
    choice = EntryChoice(names, since, options.level)
    folder = options.find_plain_folder() or options.load_config().data_path
    reader = LogFolderReader(folder / "logs")
    chosen = [each for each in reader.read() if choice.wants(each)]
    yield chosen if options.tail is None else chosen[max(0, len(chosen) - options.tail) :]
    while True:
        time.sleep(LOOK_SECONDS)
        yield filter(choice.wants, reader.read())


def _ask_node(
    client: Client, options: LogOptions, names: list[str], age_ms: int | None
) -> Iterator[Iterable[LogEntry]]:
    """Yield the entries that a node answers with, then new ones, endlessly."""
    query: dict[str, str | tuple[str, ...]] = {"about": tuple(names)} if names else {}
    query |= {"level": options.level.value} if options.level is not None else {}
    first = {"tail": str(MOST_ENTRIES if options.tail is None else options.tail)}
    first |= {"since_ms": str(age_ms)} if age_ms is not None else {}
    page = client.get(LogPage, "logs", **query, **first)
    if page.is_cut and options.tail is None:
        say_aside("older lines are left out: they are in the files of the node, in logs/")
    yield (LogEntry(each.file, each.text) for each in page.entries)
    while True:
        more = {"tail": str(MOST_ENTRIES), "after": page.next, "wait_ms": str(WAIT_MS)}
        page = client.get(LogPage, "logs", **query, **more)
        yield (LogEntry(each.file, each.text) for each in page.entries)


def _print_entry(entry: LogEntry, options: LogOptions) -> None:
    prefix = f"[{entry.file}] " if options.prefix else ""
    if options.output is EntryFormat.JSON:
        say(f"{prefix}{format_json(entry.as_object())}")
        return
    for line in entry.text.split("\n"):
        say(f"{prefix}{line}")


@with_options(RemoteOptions)
def log_level(
    options: RemoteOptions,
    logger: Annotated[
        str,
        Argument(
            metavar="LOGGER",
            help="As `get loggers` shows it, or root.",
            show_default=False,
            complete=complete_names((Kind.LOGGER,)),
        ),
    ],
    level: Annotated[Level, Argument(case_sensitive=False, show_default=False)],
    *,
    keep: Annotated[bool, Option("--keep", help="After the node was started again, too.")] = False,
) -> None:
    """Set the level of a logger, in all processes of the node until it ends."""
    query = {"keep": "true"} if keep else {}
    path = ("admin", "loggers", logger)
    find_client(options).put(object, *path, body={"level": level.value}, **query)
    say(f"logger {logger} has level {level.value}{', and keeps it' if keep else ''}")
