"""The commands that change the state of connectors: `delete`, `pause`, `resume`, `stop`, `restart`.

And `wait`, which returns when connectors are in a state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from ....replies.connectors import ConnectorStateInfo
from ....replies.live.awaited import Awaited
from ....replies.node import Message
from ...adapters.parameters import Option
from ...output.printing import Misused, say
from ...requests.client import Client, find_client
from ...requests.grammar import Kind, TaskName
from ...requests.names import OfConnectors, name_argument
from ...requests.options import RemoteOptions, with_options
from ...requests.resolving import (
    choose_connectors,
    find_connectors,
    resolve_tasks,
    split_choice,
)
from ...requests.selecting import Choice
from ...requests.several import for_each, pick
from ...requests.waiting import (
    AWAITED,
    ONE_MINUTE,
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

    forget: Annotated[
        bool,
        Option(
            "--forget/--no-forget",
            help="Remove what its source keeps elsewhere, such as a replication slot.",
        ),
    ] = True
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be deleted.")] = False
    ignore_not_found: Annotated[
        bool, Option("--ignore-not-found", help="A connector that there is not is no failure.")
    ] = False
    give_up: Annotated[
        bool,
        Option("--give-up", help="Give up the rows that could not be published so far."),
    ] = False

    def query(self) -> dict[str, str]:
        """Return what REST is asked beside the name."""
        query = dict[str, str]() if self.forget else {"forget": "false"}
        return query | ({"publish": "false"} if self.give_up else {})


@with_options(DeleteOptions)
@with_options(Choice)
def delete(choice: Choice, options: DeleteOptions, words: OfConnectors = None) -> None:
    """Delete connectors: their tasks stop, their offsets stay."""
    timeout_ms = options.timeout_ms()
    client, names = find_connectors(options, "delete", words, choice)
    if options.dry_run or options.ignore_not_found:
        names = _keep_existing(client, names, is_lenient=options.ignore_not_found)

    def order(name: str) -> None:
        if options.dry_run:
            say(f"connector {name} would be deleted")
            return
        pending = client.delete(Message, "connectors", name, **options.query())
        say(pending.message if pending else f"connector {name} deleted")

    wait_ms = None if options.dry_run else timeout_ms
    for_each(names, order, then=make_wait(client, Awaited.DELETED, wait_ms))


def _keep_existing(client: Client, names: Sequence[str], *, is_lenient: bool) -> list[str]:
    """Return those of the connectors that there are; raises `Failed` unless `is_lenient`."""
    there = client.get(list[str], "connectors")
    if not is_lenient:
        return pick("connector", names, there, lambda name: [name]) if names else []
    return [each for each in names if each in there]


@with_options(WaitOptions)
@with_options(Choice)
def pause(choice: Choice, options: WaitOptions, words: OfConnectors = None) -> None:
    """Pause connectors: their tasks stay on their workers and begin no batch."""
    _order(options, words, choice, "pause", "pauses", Awaited.PAUSED)


@with_options(WaitOptions)
@with_options(Choice)
def resume(choice: Choice, options: WaitOptions, words: OfConnectors = None) -> None:
    """Resume connectors that are paused or stopped."""
    _order(options, words, choice, "resume", "runs", Awaited.RUNNING)


@with_options(WaitOptions)
@with_options(Choice)
def stop(choice: Choice, options: WaitOptions, words: OfConnectors = None) -> None:
    """Stop connectors: their tasks end once what they committed is published.

    The offsets of a connector stay, and can be changed as soon as its state is STOPPED.
    """
    _order(options, words, choice, "stop", "stops", Awaited.STOPPED)


@with_options(RemoteOptions)
@with_options(Choice)
def wait(
    choice: Choice,
    options: RemoteOptions,
    words: Annotated[
        list[str] | None, name_argument((Kind.CONNECTOR, Kind.WORKER), may_be_all=True)
    ] = None,
    *,
    state: Annotated[
        Awaited,
        Option("--for", help="The state to wait for.", show_default=False, case_sensitive=False),
    ],
    timeout: Timeout = ONE_MINUTE,
) -> None:
    """Return when connectors or workers are in a state; running: and all their tasks, too.

    A connector has failed if one of its tasks has. It is caught up if it runs and its tasks had
    nothing left to read when they last planned a batch, and all is published. Workers can be
    running, drained or deleted. What cannot come without somebody's help is told at once: a
    connector that is stopped, or that failed and does not restart.
    """
    timeout_ms = parse_duration(timeout)
    named = split_choice("wait", words, (Kind.CONNECTOR, Kind.WORKER), choice)
    kind = named.kind
    if state not in AWAITED[kind]:
        raise Misused(f"--for {state} is not of {kind.plural}: `fairlead wait --help` says what is")
    client = find_client(options)
    names = (
        choose_connectors(client, named.names, choice) if kind is Kind.CONNECTOR else named.names
    )
    wait_for(client, names, state, timeout_ms, kind=kind, is_patient=False)


@with_options(RemoteOptions)
@with_options(Choice)
def restart(
    choice: Choice,
    options: RemoteOptions,
    words: Annotated[
        list[str] | None, name_argument((Kind.CONNECTOR, Kind.TASK), may_be_all=True)
    ] = None,
    *,
    task: Annotated[int | None, Option(metavar="N", help="Restart only this task.")] = None,
    include_tasks: Annotated[
        bool, Option("--include-tasks", help="Restart the connector's tasks as well.")
    ] = False,
    only_failed: Annotated[
        bool, Option("--only-failed", help="Restart only what has failed.")
    ] = False,
) -> None:
    """Restart connectors, tasks, or everything of the connectors that has failed.

    A task is called as tables show it: `restart flights-0`, or `restart task flights/0`.
    """
    kinds = (Kind.CONNECTOR, Kind.TASK)
    named = split_choice("restart", words, kinds, choice)
    of_connectors = include_tasks or only_failed
    if of_connectors and (task is not None or named.kind is Kind.TASK):
        raise Misused("--include-tasks and --only-failed are of connectors: name no task")
    if task is not None and (len(named.names) != 1 or named.kind is Kind.TASK):
        raise Misused("--task is the number of one task: name its connector alone")
    client = find_client(options)
    targets: Sequence[str | TaskName]
    if task is not None:
        targets = [TaskName(named.names[0], task)]
    elif choice.patterns or not choice.is_by_name:
        targets = choose_connectors(client, named.names, choice)
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
    words: list[str] | None,
    choice: Choice,
    verb: str,
    outcome: str,
    awaited: Awaited,
) -> None:
    timeout_ms = options.timeout_ms()
    client, names = find_connectors(options, verb, words, choice)

    def order(name: str) -> None:
        client.order("PUT", Message, "connectors", name, verb)
        say(f"connector {name} {outcome}")

    for_each(names, order, then=make_wait(client, awaited, timeout_ms))
