"""The verb `log withdraw`: it makes a node's copies the logs of one host again (LOG.md §13)."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from ......actors.shards.hosted_logs import LogCopies, LogKinds
from ......events.entries.group_keys import name_shard
from ......events.log.errors import LogError
from ......events.stores.opening import StoreSpec
from ......events.stores.port import StoreOwner
from ...adapters.parameters import Option
from ...logs.folder import LogName
from ...output.printing import Failed, Table, show
from ...output.progress import show_progress
from ...requests.options import LocalReadOptions, with_options
from .publish import StoreKind, stopped_with_store

if TYPE_CHECKING:
    from .....config.load import Config

FROM: Final = Option("--from", help="The engine; default: log.store.", show_default=False)
LOOK_SECONDS: Final = 0.1
PATIENCE: Final = 1.5
"""So many times the silence of an owner after the claim, a node that lives has taken over."""
OWN: Final[LogKinds] = (LogName.CONTROL.kind, LogName.OFFSETS.kind)
SHARED: Final[LogKinds] = (LogName.CONTROL.shared, LogName.OFFSETS.shared)


class PairPlace(NamedTuple):
    """The two logs of a group or a shard: their name for people, their folder, id and kinds."""

    name: str
    folder: Path
    log_id: str
    kinds: LogKinds


@with_options(LocalReadOptions)
def withdraw(options: LocalReadOptions, engine: Annotated[StoreKind | None, FROM] = None) -> None:
    """Make the logs of a node that is down those of one host, with all that counts in the store.

    End all nodes of the cluster first: it is refused while one of them owns the group, or takes it.
    Then set log.store=lmdb on this node, and start no other one. The store stays as it is. It may
    be repeated when it was interrupted.
    """
    node = stopped_with_store(options, engine, "where from? --from")
    with node as (config, store), ExitStack() as stack:
        if not store.folder:
            raise Failed(
                f"no node has started on {config.data_path}, which has no key of a cluster yet:"
                " start it with log.store, and end it once it is up"
            )
        done = dict[PairPlace, LogCopies]()
        places = [*_places(config)]
        with show_progress("logs withdrawn", len(places)) as advance:
            for place in places:
                if copies := _followed(place, store, is_first=not done):
                    done[place] = copies
                    stack.callback(copies.close)
                advance(len(done))
        _require_alone(next(iter(done.values())), store.silence_seconds)
        for copies in reversed(done.values()):  # the first ones are asked for at a start
            copies.offsets.withdraw()
            copies.control.withdraw()
        ends = [
            {"log": f"{place.name} {name.value}", "entries": log.end}
            for place, copies in done.items()
            for name, log in zip(LogName, (copies.control, copies.offsets), strict=True)
        ]
    rows = [(str(each["log"]), str(each["entries"])) for each in ends]
    show(options.output, ends, [Table(("LOG", "END"), rows)])


def _places(config: "Config") -> Iterator[PairPlace]:
    """Yield the logs that a cluster may have; those of the group of its workers first."""
    yield PairPlace(config.group_id, config.group_folder, config.group_id, OWN)
    for number in range(count := config.kafka_group_shards):
        folder = config.data_path / "shards" / str(number)
        yield PairPlace(f"shard {number}", folder, name_shard(number, count), SHARED)


def _followed(place: PairPlace, store: StoreSpec, *, is_first: bool) -> LogCopies | None:
    """Claim both logs and read all that counts, which is checked; None if the store has none.

    Who claims the first ones has them all. Raises `Failed`.
    """
    try:
        with closing(store.open(f"{place.log_id}-{LogName.CONTROL.value}")) as log:
            if log.owner() is None and not is_first:
                return None
            if log.owner() is None:
                raise Failed(f"the store has no logs of {place.name}: nothing was changed")
        with ExitStack() as undo:
            copies = LogCopies.open(place.folder, place.log_id, place.kinds, store)
            undo.callback(copies.close)
            for each in (copies.control, copies.offsets):
                each.rejoin(store.folder)  # what was interrupted, or is repeated
            _claim(copies, store, store.silence_seconds if is_first else 0.0)
            for each in (copies.control, copies.offsets):
                each.verify()
            undo.pop_all()
    except LogError as error:
        raise Failed(f"{place.name}: {error}") from None
    return copies


def _claim(copies: LogCopies, store: StoreSpec, silence_seconds: float) -> None:
    """Claim logs once their owner has been silent; raises `Failed` if that is not to be seen."""
    until = time.monotonic() + 2 * silence_seconds
    while copies.claim(store.claimant, silence_seconds) is None:
        if time.monotonic() > until:
            owner = copies.control.owner()
            raise Failed(f"{_describe(owner)}: end all nodes first (`fairlead down`)")
        time.sleep(LOOK_SECONDS)


def _require_alone(copies: LogCopies, silence_seconds: float) -> None:
    """Raise `Failed` if a node that lives, and did not own the group, takes it over."""
    until = time.monotonic() + PATIENCE * silence_seconds
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        owner = copies.control.owner()
        if owner is None or owner.epoch != copies.control.epoch:
            raise Failed(f"{_describe(owner)}: end all nodes first (`fairlead down`)")


def _describe(owner: StoreOwner | None) -> str:
    if owner is None:
        return "another node owns the group"
    at = f" at {owner.claimant.address}" if owner.claimant.address else ""
    silent = f"and was heard of {owner.silent_seconds:.1f} s ago"
    return f"the node {owner.claimant.node}{at} owns the group {silent}; nothing was changed"
