"""The supervisor's handle of the group shards: the processes with the groups of Kafka clients."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....actors.shards.actor import OpenShard, ShardActor, ShardOpened
from ....actors.transport.actor import Address
from ...cluster.messages import ProcessView, ShardsAt
from ...cluster.spec import NodeSpec
from .children import GroupChild, Host


@dataclass(slots=True)
class ShardChild(GroupChild):
    """One group shard process; its name is its number."""

    kind = "shard"
    actor = ShardActor

    def order(self, node: NodeSpec) -> OpenShard:
        """Return the first message to a new process: which shard to open."""
        folder = node.shard_folder(int(self.name))
        settings, limits = node.client_settings, node.client_limits
        return OpenShard(int(self.name), node.shards, folder, settings, limits, self.has_run)


class GroupShards:
    """All group shards of a node; none if its Kafka listener is off."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.children = [ShardChild(str(number)) for number in range(host.node.shards)]

    @property
    def all_run(self) -> bool:
        """Whether all shards accept calls."""
        return all(child.state == "running" for child in self.children)

    def start(self) -> None:
        """Start all shards."""
        for child in self.children:
            child.start(self._host)

    def start_due(self) -> None:
        """Restart shards that have ended, once their back-off is over."""
        for child in self.children:
            child.start_if_due(self._host)

    def look(self) -> None:
        """Probe all shards, and kill those that do not answer in time."""
        for child in self.children:
            child.look(self._host)

    def take_up(self, opened: ShardOpened) -> None:
        """Mark a shard as running."""
        self.children[opened.number].runs(opened.pid)

    def whereabouts(self) -> ShardsAt:
        """Return the address of each shard, None for one that is not running."""
        return ShardsAt(tuple(self._address(child) for child in self.children))

    def views(self) -> Sequence[ProcessView]:
        """Return the state of each shard."""
        return [child.view() for child in self.children]

    def _address(self, child: ShardChild) -> Address | None:
        return child.address if child.state == "running" else None
