"""The commands that change the state of connectors: `delete`, `pause`, `resume`, `stop`, `restart`.

And `wait`, which returns when connectors are in a state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ....replies.connectors import ConnectorStateInfo
from ....replies.node import Message
from ...adapters.parameters import Option
from ...output.printing import Misused, say
from ...requests.client import Client, find_client
from ...requests.files import Recursive, read_all_connectors
from ...requests.grammar import Kind, TaskName, split_words
from ...requests.names import CONNECTORS, OfConnectors, Patterns, name_argument
from ...requests.options import RemoteOptions, with_options
from ...requests.resolving import (
    find_connectors,
    match_connectors,
    resolve_connectors,
    resolve_tasks,
)
from ...requests.several import for_each
from ...requests.waiting import (
    ONE_MINUTE,
    Awaited,
    Timeout,
    WaitOptions,
    make_wait,
    parse_duration,
    wait_for,
)

RESTARTING = "RESTARTING"
"""The state of what is being restarted, in REST."""


@dataclass(frozen=True, slots=True)
class DeleteOptions(WaitOptions):
    """A cluster, and how connectors are deleted."""

    files: Annotated[
        list[Path] | None,
        Option("--filename", "-f", metavar="FILE", help="Those in files or folders; repeatable."),
    ] = None
    recursive: Recursive = False
    patterns: Patterns = False
    forget: Annotated[
        bool,
        Option(
            "--forget/--no-forget",
            help="Remove what its source keeps elsewhere, such as a replication slot.",
        ),
    ] = True
    give_up: Annotated[
        bool,
        Option("--give-up", help="Give up the rows that could not be published so far."),
    ] = False

    def query(self) -> dict[str, str]:
        """Return what REST is asked beside the name."""
        query = dict[str, str]() if self.forget else {"forget": "false"}
        return query | ({"publish": "false"} if self.give_up else {})


@with_options(DeleteOptions)
def delete(
    options: DeleteOptions,
    words: Annotated[list[str] | None, name_argument(CONNECTORS, may_be_all=True)] = None,
) -> None:
    """Delete connectors: their tasks stop, their offsets stay."""
    timeout_ms = options.timeout_ms()
    names = [*read_all_connectors(options.files or [], recursive=options.recursive)]
    if words or not names:
        split_words("delete", words or [], CONNECTORS)
    client = find_client(options)
    if words:
        names += resolve_connectors(client, "delete", words, patterns=options.patterns)

    def order(name: str) -> None:
        pending = client.delete(Message, "connectors", name, **options.query())
        say(pending.message if pending else f"connector {name} deleted")

    for_each(names, order, then=make_wait(client, Awaited.DELETED, timeout_ms))


@with_options(WaitOptions)
def pause(options: WaitOptions, words: OfConnectors, *, patterns: Patterns = False) -> None:
    """Pause connectors: their tasks stay on their workers and begin no batch."""
    _order(options, words, patterns, "pause", "pauses", Awaited.PAUSED)


@with_options(WaitOptions)
def resume(options: WaitOptions, words: OfConnectors, *, patterns: Patterns = False) -> None:
    """Resume connectors that are paused or stopped."""
    _order(options, words, patterns, "resume", "runs", Awaited.RUNNING)


@with_options(WaitOptions)
def stop(options: WaitOptions, words: OfConnectors, *, patterns: Patterns = False) -> None:
    """Stop connectors: their tasks end once what they committed is published.

    The offsets of a connector stay, and can be changed as soon as its state is STOPPED.
    """
    _order(options, words, patterns, "stop", "stops", Awaited.STOPPED)


@with_options(RemoteOptions)
def wait(
    options: RemoteOptions,
    words: OfConnectors,
    *,
    state: Annotated[Awaited, Option("--for", help="The state to wait for.", show_default=False)],
    timeout: Timeout = ONE_MINUTE,
    patterns: Patterns = False,
) -> None:
    """Return when connectors are in a state; running: and all their tasks, too.

    What cannot come without somebody's help is told at once: a connector that is stopped, or that
    failed and does not restart.
    """
    timeout_ms = parse_duration(timeout)
    client, names = find_connectors(options, "wait", words, patterns=patterns)
    wait_for(client, names, state, timeout_ms, is_patient=False)


@with_options(RemoteOptions)
def restart(
    options: RemoteOptions,
    words: Annotated[list[str], name_argument((Kind.CONNECTOR, Kind.TASK))],
    *,
    task: Annotated[int | None, Option(metavar="N", help="Restart only this task.")] = None,
    include_tasks: Annotated[
        bool, Option("--include-tasks", help="Restart the connector's tasks as well.")
    ] = False,
    only_failed: Annotated[
        bool, Option("--only-failed", help="Restart only what has failed.")
    ] = False,
    patterns: Patterns = False,
) -> None:
    """Restart connectors, tasks, or everything of the connectors that has failed.

    A task is called as tables show it: `restart flights-0`, or `restart task flights/0`.
    """
    named = split_words("restart", words, (Kind.CONNECTOR, Kind.TASK))
    of_connectors = include_tasks or only_failed
    if of_connectors and (task is not None or named.kind is Kind.TASK):
        raise Misused("--include-tasks and --only-failed are of connectors: name no task")
    if task is not None and (len(named.names) > 1 or named.kind is Kind.TASK):
        raise Misused("--task is the number of one task: name its connector alone")
    client = find_client(options)
    targets: Sequence[str | TaskName]
    if task is not None:
        targets = [TaskName(named.names[0], task)]
    elif patterns:
        targets = match_connectors(client, named.names)
    else:
        targets = resolve_tasks(client, named)
    if of_connectors and any(isinstance(each, TaskName) for each in targets):
        raise Misused("--include-tasks and --only-failed are of connectors: name no task")
    again = _restarter(client, include_tasks=include_tasks, only_failed=only_failed)

    def order(each: str | TaskName) -> None:
        if isinstance(each, TaskName):
            _restart_task(client, each)
        else:
            again(each)

    for_each(targets, order)


def _restart_task(client: Client, task: TaskName) -> None:
    path = "connectors", task.connector, "tasks", str(task.number), "restart"
    client.order("POST", Message, *path)
    say(f"task {task} restarted")


def _restarter(client: Client, *, include_tasks: bool, only_failed: bool) -> Callable[[str], None]:
    wishes = {"includeTasks": include_tasks, "onlyFailed": only_failed}
    query = {key: "true" for key, is_wished in wishes.items() if is_wished}

    def order(name: str) -> None:
        status = client.order("POST", ConnectorStateInfo, "connectors", name, "restart", **query)
        if status is None:
            say(f"connector {name} restarted")
            return
        state = RESTARTING
        restarting = [f"{name}-{each.id}" for each in status.tasks if each.state == state]
        if status.connector.state == state:
            restarting.insert(0, name)
        say(f"restarting: {', '.join(restarting) or 'nothing, since nothing has failed'}")

    return order


def _order(  # one for each of three verbs
    options: WaitOptions,
    words: list[str],
    patterns: bool,
    verb: str,
    outcome: str,
    awaited: Awaited,
) -> None:
    timeout_ms = options.timeout_ms()
    client, names = find_connectors(options, verb, words, patterns=patterns)

    def order(name: str) -> None:
        client.order("PUT", Message, "connectors", name, verb)
        say(f"connector {name} {outcome}")

    for_each(names, order, then=make_wait(client, awaited, timeout_ms))
