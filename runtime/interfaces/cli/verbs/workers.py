"""The commands for workers: `cordon`, `uncordon`, `drain`, `expect`, `remove`, `rebalance`."""

from enum import StrEnum
from typing import Annotated

import typer

from ...replies.groups import GroupSummary
from ...replies.node import GroupWorkerOrder, WorkerRemoval
from ..command.client import client_of
from ..command.options import There, of_kind, takes
from ..command.printing import say
from ..requests.names import OfGroup, Worker, group_of
from ..requests.waiting import milliseconds


class Removable(StrEnum):
    """The types that `remove` accepts."""

    WORKER = "worker"


@takes(There)
def cordon(place: There, worker: Worker) -> None:
    """Give a worker no new work; it keeps what it has."""
    _order(place, worker, "cordon")


@takes(There)
def uncordon(place: There, worker: Worker) -> None:
    """Let a worker get work again: ends a cordon or a drain."""
    _order(place, worker, "uncordon")


@takes(There)
def drain(place: There, worker: Worker) -> None:
    """Give a worker no new work, and take away what it has."""
    _order(place, worker, "drain")


@takes(There)
def expect(
    place: There,
    worker: Worker,
    within: Annotated[
        str, typer.Option(metavar="TIME", help="For example 90s, 10m or 2h; 0s: do not wait.")
    ] = "10m",
) -> None:
    """If a worker is lost or leaves, keep its work for it until it is back or the time is over.

    There is no wait for a worker that leaves gracefully: its work goes to the others at once.
    """
    _order(place, worker, "expect", {"within_ms": milliseconds(within)})


@takes(There)
def remove(
    place: There,
    what: Annotated[Removable, of_kind(Removable)],
    name: Worker,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="End its process at once, also if it has work.")
    ] = False,
) -> None:
    """Remove a worker: it gives up its work and leaves, and its process ends for good.

    Nothing waits for its return. For a worker that is away or lost, this only ends the wait for it.
    """
    query = {"force": "true"} if force else dict[str, str]()
    removal = client_of(place).delete(WorkerRemoval, "workers", name, **query)
    if removal:
        say(f"{what.value} {removal.worker}: {removal.message}")


@takes(There)
def rebalance(place: There, group: OfGroup = None) -> None:
    """Compute a new target for the group, although nothing has changed."""
    client = client_of(place)
    group_id = group_of(place, client, group)
    reply = client.post(GroupSummary, "groups", group_id, "rebalance", body=None)
    say(f"group {reply.group_id} rebalances: it is {reply.state} at epoch {reply.group_epoch}")


def _order(place: There, worker: str, verb: str, body: object = None) -> None:
    """Send an order, and print the order in force."""
    order = client_of(place).put(GroupWorkerOrder, "workers", worker, verb, body=body)
    wishes = {"cordoned": order.cordoned, "draining": order.draining}
    words = [word for word, is_wished in wishes.items() if is_wished] or ["open to work"]
    if order.expected_back_ms:
        words.append("expected back")
    say(f"worker {order.worker} is {', '.join(words)}")
