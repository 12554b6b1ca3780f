"""Finds the connectors and tasks that names, patterns and numbers of tasks stand for."""

from collections.abc import Sequence
from typing import Final

from ..output.printing import Failed, Misused, say_aside
from .client import Client, find_client
from .grammar import CONNECTORS, Kind, NamedObjects, TaskName, parse_task, split_words
from .options import RemoteOptions
from .selecting import Choice

NONE: Final = "there is no connector"


def find_connectors(
    options: RemoteOptions, verb: str, words: Sequence[str] | None, choice: Choice
) -> tuple[Client, list[str]]:
    """Return the client of a cluster, and the connectors in `[connector] NAME…` there.

    Raises `Failed`, `Misused`; words that are none are refused before a cluster is asked.
    """
    named = split_choice(verb, words, CONNECTORS, choice)
    client = find_client(options)
    return client, choose_connectors(client, named.names, choice)


def split_choice(
    verb: str, words: Sequence[str] | None, kinds: Sequence[Kind], choice: Choice
) -> NamedObjects:
    """Return the kind and the names in words and files; raises `Failed`, `Misused`."""
    named = split_words(verb, words or (), kinds, may_be_all=not choice.needs_names)
    if choice != Choice() and named.kind is not Kind.CONNECTOR:
        options = "--reg-exp, --selector, --all and --filename"
        raise Misused(f"{options} are of connectors, not of {named.kind.plural}")
    choice.check(named.names)
    return named._replace(names=[*choice.read_names(), *named.names])


def choose_connectors(client: Client, names: Sequence[str], choice: Choice) -> list[str]:
    """Return the connectors of a choice; that none has the labels is told, and is no failure.

    Raises `Failed`, `Misused`.
    """
    if choice.patterns and choice.is_by_name:
        return match_connectors(client, names)
    if choice.is_by_name:
        return [*dict.fromkeys(names)]
    requirements = choice.check(names)
    chosen = (
        client.get(list[str], "connectors")
        if choice.every
        else [
            name
            for name, labels in fetch_labels(client).items()
            if all(each.accepts(labels) for each in requirements)
        ]
    )
    if not chosen:
        say_aside(f"no connector has the labels {choice.selector}" if choice.selector else NONE)
    return chosen


def fetch_labels(client: Client) -> dict[str, dict[str, str]]:
    """Return the labels of all connectors."""
    from ....pipeline.spi.keys.labels import read_labels  # noqa: PLC0415  # few verbs select
    from ...replies.connectors import ExpandedConnector  # noqa: PLC0415

    there = client.get(dict[str, ExpandedConnector], "connectors", expand="info")
    return {
        name: read_labels(entry.info.config if entry.info else {}) for name, entry in there.items()
    }


def match_connectors(client: Client, patterns: Sequence[str]) -> list[str]:
    """Return the connectors whose whole name matches one of the patterns.

    Raises `Misused` for a pattern that is none, `Failed` if nothing matches.
    """
    from ....pipeline.untrusted.patterns import PatternRefused, compile_pattern  # noqa: PLC0415

    try:
        compiled = [compile_pattern(each) for each in patterns]
    except PatternRefused as error:
        raise Misused(f"{' '.join(patterns)} is no regular expression of RE2: {error}") from None
    there = client.get(list[str], "connectors")
    found = [name for name in there if any(each.matches(name) for each in compiled)]
    if not found:
        raise Failed(f"no connector matches {' '.join(patterns)}; there is: {_listed(there)}")
    return found


def resolve_tasks(client: Client, named: NamedObjects) -> list[str | TaskName]:
    """Return the connectors, as texts, and the tasks that are named.

    Without the word `task` a name is a task's if there is no connector of that name, but one with
    its first part. Raises `Misused` for a task that is called as none can be.
    """
    if named.kind is Kind.TASK:
        return [_task(each) for each in named.names]
    likely = {} if named.is_told else {each: parse_task(each) for each in named.names}
    there = client.get(list[str], "connectors") if any(likely.values()) else []
    return [
        task
        if (task := likely.get(each)) and each not in there and task.connector in there
        else each
        for each in named.names
    ]


def fetch_task_names(client: Client) -> list[TaskName]:
    """Return the tasks of all connectors."""
    from ...replies.connectors import ExpandedConnector  # noqa: PLC0415

    found = client.get(dict[str, ExpandedConnector], "connectors", expand="info")
    return [
        TaskName(name, each.task)
        for name, entry in found.items()
        for each in (entry.info.tasks if entry.info else ())
    ]


def _task(name: str) -> TaskName:
    found = parse_task(name)
    if found is None:
        raise Misused(f"{name!r} is no task: a task is called as `get tasks` shows it, flights-0")
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
