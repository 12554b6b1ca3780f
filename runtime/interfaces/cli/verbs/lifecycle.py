"""The life of a connector from the command line: `pause`, `resume`, `stop` and `restart`."""

from typing import Annotated

import typer

from .....events.model import RunState
from ...replies.connectors import ConnectorStateInfo
from ...replies.node import Message
from ..command.client import client_of
from ..command.options import There, takes
from ..command.printing import Misused, say

Connector = Annotated[
    str, typer.Argument(metavar="NAME", help="The connector's name.", show_default=False)
]


@takes(There)
def pause(place: There, name: Connector) -> None:
    """Pause a connector: its tasks keep their places, and begin no batch."""
    _order(place, name, "pause")
    say(f"connector {name} pauses")


@takes(There)
def resume(place: There, name: Connector) -> None:
    """Have a connector run again that is paused or stopped."""
    _order(place, name, "resume")
    say(f"connector {name} runs")


@takes(There)
def stop(place: There, name: Connector) -> None:
    """Stop a connector: its tasks end once what they committed is published.

    Its offsets stay, and can be changed as soon as its state is STOPPED.
    """
    _order(place, name, "stop")
    say(f"connector {name} stops")


@takes(There)
def restart(
    place: There,
    name: Connector,
    *,
    task: Annotated[
        int | None, typer.Option(metavar="N", help="Restart this task, and nothing else.")
    ] = None,
    include_tasks: Annotated[
        bool, typer.Option("--include-tasks", help="Restart the connector's tasks as well.")
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Restart only what has failed.")
    ] = False,
) -> None:
    """Restart a connector where it is, or one task, or all of it that has failed."""
    client = client_of(place)
    if task is not None:
        if include_tasks or only_failed:
            raise Misused("--task names one task: --include-tasks and --only-failed go without it")
        client.order("POST", Message, "connectors", name, "tasks", str(task), "restart")
        say(f"task {name}-{task} restarted")
        return
    wishes = {"includeTasks": include_tasks, "onlyFailed": only_failed}
    query = {key: "true" for key, is_wished in wishes.items() if is_wished}
    told = client.order("POST", ConnectorStateInfo, "connectors", name, "restart", **query)
    if told is None:
        say(f"connector {name} restarted")
        return
    state = RunState.RESTARTING.value
    restarting = [f"{name}-{each.id}" for each in told.tasks if each.state == state]
    if told.connector.state == state:
        restarting.insert(0, name)
    say(f"restarting: {', '.join(restarting) or 'nothing, since nothing has failed'}")


def _order(place: There, name: str, verb: str) -> None:
    client_of(place).order("PUT", Message, "connectors", name, verb)
