"""The command `events`: what happened in a group, and what happens."""

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

from ...replies.live.events import EventInfo, EventList
from ..adapters.parameters import Option
from ..output.layout import TableLayout
from ..output.phrases import format_time
from ..output.printing import Output, say, show
from ..requests.client import Client, find_client
from ..requests.grammar import CONNECTORS, Kind, parse_task, split_words
from ..requests.names import OfGroup, complete_names, find_group_id
from ..requests.options import RemoteReadOptions, with_options

SUBJECTS: Final = (Kind.CONNECTOR, Kind.TASK, Kind.WORKER)
LOOK_SECONDS: Final = 1.0
RESTART_ENTRIES: Final = 5_000
"""After so many entries of the log a watch begins anew where it is, so that answers stay short."""


class EventType(StrEnum):
    """The types of events."""

    NORMAL = "normal"
    WARNING = "warning"


@with_options(RemoteReadOptions)
def events(
    options: RemoteReadOptions,
    group: OfGroup = None,
    *,
    about: Annotated[
        list[str] | None,
        Option(
            "--for",
            metavar="KIND/NAME",
            help="Only those of it: flights, task/flights-0, worker/w1; repeatable.",
            complete=complete_names(CONNECTORS),
        ),
    ] = None,
    types: Annotated[
        list[EventType] | None, Option("--types", help="Only those of a type; repeatable.")
    ] = None,
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, max=100_000, help="How many, the latest ones.")
    ] = 100,
    watch: Annotated[
        bool, Option("--watch", "-w", help="Continue with new ones until Ctrl-C.")
    ] = False,
) -> None:
    """List what happened: connectors that changed, what started, stopped, moved and failed.

    The events are those of the log of the group, as `logs` has them in lines, within its last
    10,000 entries.
    """
    subjects = [_parse_subject(each) for each in about or ()]
    client = find_client(options)
    group_id = find_group_id(options, client, group)
    fetched = _fetch(client, group_id, -1)

    def choose(found: Sequence[EventInfo]) -> list[EventInfo]:
        wanted = {each.value for each in types or EventType}
        return [each for each in found if each.type.lower() in wanted and _is_of(each, subjects)]

    chosen = choose(fetched.events)[-limit:]
    if not watch:
        show(options.output, chosen, [EVENTS.lay_out(chosen)])
        return
    try:
        _print_lines(options.output, chosen)
        start, shown = fetched.start, len(fetched.events)
        while True:
            time.sleep(LOOK_SECONDS)
            fetched = _fetch(client, group_id, start)
            if fetched.start != start:  # more has happened at once than an answer holds
                shown = 0
            _print_lines(options.output, choose(fetched.events[shown:]))
            start, shown = fetched.start, len(fetched.events)
            if fetched.next - start > RESTART_ENTRIES:
                start, shown = fetched.next, 0
    except KeyboardInterrupt:  # the normal end of `--watch`
        return


def _fetch(client: Client, group_id: str, start: int) -> EventList:
    return client.get(EventList, "groups", group_id, "events", start=str(start))


def _print_lines(output: Output, found: Sequence[EventInfo]) -> None:
    """Print events as they come: each is a line, or a document of its own."""
    for each in found:
        if output is Output.TABLE:
            told = f"{format_time(each.time_ms)}  {each.type:<7}  {_subject(each)}: {each.text}"
            say(told)
        else:
            show(output, each, ())
    sys.stdout.flush()


def _subject(event: EventInfo) -> str:
    if event.connector is None:
        return event.worker and f"worker/{event.worker}"
    return event.connector if event.task is None else f"{event.connector}-{event.task}"


EVENTS: Final = TableLayout(
    EventInfo,
    "TIME: time_ms, TYPE: type, SUBJECT, EVENT: text",
    {"TIME": format_time, "SUBJECT": _subject},
    empty="no events",
    folded=("EVENT",),
)


def _parse_subject(word: str) -> tuple[Kind, str]:
    """Return what events are to be about; raises `Misused`."""
    named = split_words("events --for", [word], SUBJECTS)
    (name,) = named.names
    task = parse_task(name) if "/" in name or named.kind is Kind.TASK else None
    return (Kind.TASK, str(task)) if task else (named.kind, name)


def _is_of(event: EventInfo, subjects: Sequence[tuple[Kind, str]]) -> bool:
    """Return whether an event is of one of the subjects; those of tasks are of their connector."""
    names = {
        (Kind.CONNECTOR, event.connector or ""),
        (Kind.WORKER, event.worker),
        (Kind.TASK, _subject(event) if event.task is not None else ""),
    }
    return not subjects or not names.isdisjoint(subjects)
