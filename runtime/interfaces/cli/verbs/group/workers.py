"""The commands for workers: `cordon`, `uncordon`, `drain`, `expect`, `remove`, `rebalance`."""

from typing import Annotated

from ....replies.groups import GroupSummary
from ....replies.node import GroupWorkerOrder, WorkerRemoval
from ...adapters.parameters import Option
from ...output.printing import say
from ...requests.client import find_client
from ...requests.grammar import WORKERS, split_words
from ...requests.names import OfGroup, OfWorkers, find_group_id
from ...requests.options import RemoteOptions, with_options
from ...requests.several import for_each
from ...requests.waiting import WaitOptions, parse_duration, wait_until_empty


@with_options(RemoteOptions)
def cordon(options: RemoteOptions, words: OfWorkers) -> None:
    """Give a worker no new work; it keeps what it has."""
    _order(options, words, "cordon")


@with_options(RemoteOptions)
def uncordon(options: RemoteOptions, words: OfWorkers) -> None:
    """Let a worker get work again: ends a cordon or a drain."""
    _order(options, words, "uncordon")


@with_options(WaitOptions)
def drain(options: WaitOptions, words: OfWorkers) -> None:
    """Give workers no new work, and take away what they have.

    With --wait it tells what each of them still has, and returns when that is nothing.
    """
    timeout_ms = options.timeout_ms()
    _order(options, words, "drain", wait_ms=timeout_ms)


@with_options(RemoteOptions)
def expect(
    options: RemoteOptions,
    words: OfWorkers,
    within: Annotated[
        str, Option(metavar="TIME", help="For example 90s, 10m or 2h; 0s: do not wait.")
    ] = "10m",
) -> None:
    """If a worker is lost or leaves, keep its work for it until it is back or the time is over.

    It also ends a wait that has begun: with --within 0s the others get the work at once.
    """
    _order(options, words, "expect", {"within_ms": parse_duration(within)})


@with_options(RemoteOptions)
def remove(
    options: RemoteOptions,
    words: OfWorkers,
    *,
    force: Annotated[
        bool, Option("--force", help="End its process at once, also if it has work.")
    ] = False,
) -> None:
    """Remove workers: each gives up its work and leaves, and its process ends for good.

    Nothing waits for its return. For a worker that is away or lost, this only ends the wait for it.
    """
    query = {"force": "true"} if force else dict[str, str]()
    names = split_words("remove", words, WORKERS).names
    client = find_client(options)

    def order(name: str) -> None:
        if removal := client.delete(WorkerRemoval, "workers", name, **query):
            say(f"worker {removal.worker}: {removal.message}")

    for_each(names, order, "worker")


@with_options(RemoteOptions)
def rebalance(options: RemoteOptions, group: OfGroup = None) -> None:
    """Compute a new target for the group, although nothing has changed."""
    client = find_client(options)
    group_id = find_group_id(options, client, group)
    summary = client.post(GroupSummary, "groups", group_id, "rebalance", body=None)
    say(
        f"group {summary.group_id} rebalances: it is {summary.state} at epoch {summary.group_epoch}"
    )


def _order(
    options: RemoteOptions,
    words: list[str],
    verb: str,
    body: object = None,
    wait_ms: int | None = None,
) -> None:
    """Send an order for each worker, and print the orders in force; wait until they are empty."""
    names = split_words(verb, words, WORKERS).names
    client = find_client(options)
    workers: list[str] = []

    def send(name: str) -> None:
        order = client.put(GroupWorkerOrder, "workers", name, verb, body=body)
        wishes = {"cordoned": order.cordoned, "draining": order.draining}
        told = [word for word, is_wished in wishes.items() if is_wished] or ["open to work"]
        if order.expected_back_ms:
            told.append("expected back")
        say(f"worker {order.worker} is {', '.join(told)}")
        workers.append(order.worker)

    def wait(_: list[str]) -> None:
        if wait_ms is not None:
            wait_until_empty(client, workers, wait_ms)

    for_each(names, send, "worker", then=wait)
