"""The processes of the groups of Kafka's clients, as the supervisor answers for them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...actors.door.actor import Address
from ...actors.shards.actor import OpenShard, ShardActor, ShardOpened
from ..cluster.messages import ProcessView, ShardsAt
from ..cluster.spec import NodeSpec
from .children import GroupChild, Host


@dataclass(slots=True)
class ShardChild(GroupChild):
    """One of these processes; its name is its number."""

    kind = "shard"
    actor = ShardActor

    def order(self, node: NodeSpec) -> OpenShard:
        """Return what its process is told first."""
        folder = node.shard_folder(int(self.name))
        return OpenShard(int(self.name), node.shards, folder, node.client_settings, self.has_run)


class GroupShards:
    """All of them; a node whose listener for Kafka's clients is off has none."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.children = [ShardChild(str(number)) for number in range(host.node.shards)]

    @property
    def all_run(self) -> bool:
        """Whether all of them take calls."""
        return all(child.state == "running" for child in self.children)

    def start(self) -> None:
        """Start all of them."""
        for child in self.children:
            child.start(self._host)

    def start_due(self) -> None:
        """Start those again that have ended, and have rested."""
        now = time.monotonic()
        for child in self.children:
            if child.is_to_start(now):
                child.start(self._host)

    def look(self) -> None:
        """End those that have been silent for too long."""
        for child in self.children:
            child.look(self._host)

    def take_up(self, opened: ShardOpened) -> None:
        """Take note that one of them takes calls."""
        self.children[opened.number].runs(opened.pid)

    def whereabouts(self) -> ShardsAt:
        """Return where each of them is; None for one that is not, at this moment."""
        return ShardsAt(tuple(self._address(child) for child in self.children))

    def views(self) -> Sequence[ProcessView]:
        """Return what others are told of them."""
        return [child.view() for child in self.children]

    def _address(self, child: ShardChild) -> Address | None:
        return child.address if child.state == "running" else None
