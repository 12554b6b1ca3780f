"""The commands that change the state of connectors: `delete`, `pause`, `resume`, `stop`, `restart`.

And `wait`, which returns when connectors are in a state.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from .....events.model import RunState
from ...replies.connectors import ConnectorStateInfo
from ...replies.node import Message
from ..command.client import Client, client_of
from ..command.options import There, of_kind, takes
from ..command.printing import Misused, say
from ..requests.names import Connectors
from ..requests.several import for_each
from ..requests.waiting import ONE_MINUTE, Awaited, Timeout, Waiting, milliseconds, wait_for


class ConnectorKind(StrEnum):
    """The only type that `delete`, `wait`, `patch`, `scale` and `edit` accept."""

    CONNECTOR = "connector"


OneKind = Annotated[ConnectorKind, of_kind(ConnectorKind)]


@takes(There)
def delete(
    place: There,
    what: OneKind,
    names: Connectors,
    *,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget/--no-forget",
            help="Remove what its source keeps elsewhere, such as a replication slot.",
        ),
    ] = True,
    give_up: Annotated[
        bool,
        typer.Option("--give-up", help="Give up the rows that could not be published so far."),
    ] = False,
) -> None:
    """Delete connectors: their tasks stop, their offsets stay."""
    query = dict[str, str]() if forget else {"forget": "false"}
    if give_up:
        query["publish"] = "false"
    client = client_of(place)

    def order(name: str) -> None:
        pending = client.delete(Message, "connectors", name, **query)
        say(pending.message if pending else f"{what.value} {name} deleted")

    for_each(names, order)


@takes(Waiting)
def pause(place: Waiting, names: Connectors) -> None:
    """Pause connectors: their tasks stay on their workers and begin no batch."""
    _order(place, names, "pause", "pauses", Awaited.PAUSED)


@takes(Waiting)
def resume(place: Waiting, names: Connectors) -> None:
    """Resume connectors that are paused or stopped."""
    _order(place, names, "resume", "runs", Awaited.RUNNING)


@takes(Waiting)
def stop(place: Waiting, names: Connectors) -> None:
    """Stop connectors: their tasks end once what they committed is published.

    The offsets of a connector stay, and can be changed as soon as its state is STOPPED.
    """
    _order(place, names, "stop", "stops", Awaited.STOPPED)


@takes(There)
def wait(
    place: There,
    what: OneKind,  # noqa: ARG001  # there is only one, as for `delete`
    names: Connectors,
    *,
    state: Annotated[
        Awaited, typer.Option("--for", help="The state to wait for.", show_default=False)
    ],
    timeout: Timeout = ONE_MINUTE,
) -> None:
    """Return when connectors are in a state; running: and all their tasks, too."""
    timeout_ms = milliseconds(timeout)
    wait_for(client_of(place), names, state, timeout_ms)


@takes(There)
def restart(
    place: There,
    names: Connectors,
    *,
    task: Annotated[int | None, typer.Option(metavar="N", help="Restart only this task.")] = None,
    include_tasks: Annotated[
        bool, typer.Option("--include-tasks", help="Restart the connector's tasks as well.")
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Restart only what has failed.")
    ] = False,
) -> None:
    """Restart connectors, one task, or everything of the connectors that has failed."""
    client = client_of(place)
    if task is None:
        for_each(names, _restarter(client, include_tasks=include_tasks, only_failed=only_failed))
        return
    if include_tasks or only_failed:
        raise Misused("--task names one task: --include-tasks and --only-failed go without it")
    if len(names) > 1:
        raise Misused("--task is the number of one task: name its connector alone")
    client.order("POST", Message, "connectors", names[0], "tasks", str(task), "restart")
    say(f"task {names[0]}-{task} restarted")


def _restarter(client: Client, *, include_tasks: bool, only_failed: bool) -> Callable[[str], None]:
    wishes = {"includeTasks": include_tasks, "onlyFailed": only_failed}
    query = {key: "true" for key, is_wished in wishes.items() if is_wished}

    def order(name: str) -> None:
        told = client.order("POST", ConnectorStateInfo, "connectors", name, "restart", **query)
        if told is None:
            say(f"connector {name} restarted")
            return
        state = RunState.RESTARTING.value
        restarting = [f"{name}-{each.id}" for each in told.tasks if each.state == state]
        if told.connector.state == state:
            restarting.insert(0, name)
        say(f"restarting: {', '.join(restarting) or 'nothing, since nothing has failed'}")

    return order


def _order(place: Waiting, names: list[str], verb: str, told: str, awaited: Awaited) -> None:
    timeout_ms = place.timeout_ms()
    client = client_of(place)

    def order(name: str) -> None:
        client.order("PUT", Message, "connectors", name, verb)
        say(f"connector {name} {told}")

    for_each(names, order)
    if timeout_ms is not None:
        wait_for(client, names, awaited, timeout_ms)
