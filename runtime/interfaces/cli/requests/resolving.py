"""Finds the connectors and tasks that names, patterns and numbers of tasks stand for."""

from collections.abc import Sequence

from ..output.printing import Failed, Misused
from .client import Client, find_client
from .grammar import Kind, NamedObjects, TaskName, parse_task, split_words
from .options import RemoteOptions


def find_connectors(
    options: RemoteOptions, verb: str, words: Sequence[str], *, patterns: bool
) -> tuple[Client, list[str]]:
    """Return the client of a cluster, and the connectors in `[connector] NAME…` there.

    Raises `Failed`, `Misused`; words that are none are refused before a cluster is asked.
    """
    split_words(verb, words, (Kind.CONNECTOR,))
    client = find_client(options)
    return client, resolve_connectors(client, verb, words, patterns=patterns)


def resolve_connectors(
    client: Client, verb: str, words: Sequence[str], *, patterns: bool
) -> list[str]:
    """Return the connectors in `[connector] NAME…`; raises `Failed`, `Misused`."""
    named = split_words(verb, words, (Kind.CONNECTOR,))
    return match_connectors(client, named.names) if patterns else list(dict.fromkeys(named.names))


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
