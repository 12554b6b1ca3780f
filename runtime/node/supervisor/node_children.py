"""All children of a supervisor: the group, the shards of groups, the assignor process, the workers.

They are started in this order, looked at together, and found by the address of their current
process. The ends of members are reported to the group once it is open, and once the engine of a
worker has ended as well.
"""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from ....actors.shards.actor import OpenShard, ShardOpened
from ....actors.transport.actor import Address, address_key
from ....events.log.process import process_of
from ...cluster.figures import figures_file
from ...cluster.messages import SUPERVISOR, NodeView, OwnerAt, ProcessView, ShardsAt
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ..assignors.serving import Served, ServingShardActor
from ..process_files import Deaths, NodeProcess
from .assignor_process import ASSIGNOR, AssignorChild
from .children import ChildProcess, GroupChild, Host
from .workers import NodeWorkers, WorkerChild


@dataclass(slots=True)
class ShardChild(GroupChild):
    """One group shard process; its name is its number."""

    kind = "shard"
    actor = ServingShardActor
    is_here: bool = True
    """Whether it belongs to this node: with a store, while that owns the workers' group."""

    def is_to_start(self, now: float) -> bool:
        """Return whether to start a process now: never where it does not belong."""
        return self.is_here and GroupChild.is_to_start(self, now)

    def idle_seconds(self, now: float) -> float:
        """Return the time until its next check; none where it does not belong and has ended."""
        is_gone = not self.is_here and self.address is None
        return inf if is_gone else GroupChild.idle_seconds(self, now)

    def order(self, node: NodeSpec) -> Served:
        """Return the first message to a new process: which shard to open."""
        folder = node.shard_folder(int(self.name))
        settings, limits = node.client_settings, node.client_limits
        figures = figures_file(RunFolder(node.data_dir).metrics, self.kind, self.name)
        logs = self.has_run, figures, node.retention, node.store
        order = OpenShard(int(self.name), node.shards, folder, settings, limits, *logs)
        return Served(node.assignors, node.assignor_log, order)


class GroupShards:
    """All group shards of a node; none if its Kafka listener is off."""

    def __init__(self, host: Host) -> None:
        self._host = host
        is_here = host.node.store is None
        numbers = range(host.node.shards)
        self.children = [ShardChild(str(number), is_here=is_here) for number in numbers]
        self.owner = OwnerAt("")
        """Where clients find the groups: at the node to which the shards belong."""

    @property
    def all_run(self) -> bool:
        """Whether all shards of this node accept calls."""
        return all(child.state == "running" for child in self.children if child.is_here)

    def start(self) -> None:
        """Start all shards, if they belong here."""
        self.start_due()

    def move(self, *, here: bool) -> None:
        """Start the shards, or end them: they go where the workers' group is."""
        if self._host.node.store is None:
            return
        for child in self.children:
            has_moved, child.is_here = child.is_here != here, here
            if has_moved and child.address is not None:
                child.end = "another node owns the groups now"
                child.stop(self._host)
        self.start_due()

    def start_due(self) -> None:
        """Start shards that have not begun, or whose back-off is over."""
        for child in self.children:
            child.start_if_due(self._host)

    def look(self) -> None:
        """Probe all shards, and kill those that do not answer in time."""
        for child in self.children:
            child.look(self._host)

    def register(self, opened: ShardOpened) -> None:
        """Mark a shard as running."""
        self.children[opened.number].runs(opened.pid)

    def whereabouts(self) -> ShardsAt:
        """Return the address of each shard, None for one that is not running."""
        return ShardsAt(tuple(self._address(child) for child in self.children), self.owner)

    def views(self) -> Sequence[ProcessView]:
        """Return the state of each shard that belongs here."""
        return [child.view() for child in self.children if child.is_here]

    def _address(self, child: ShardChild) -> Address | None:
        return child.address if child.state == "running" else None


class NodeChildren:
    """The children of one supervisor, and the reports of members whose processes have ended."""

    def __init__(self, host: Host) -> None:
        self._host = host
        group_id = host.node.group_id
        self.group, self.assignor = GroupChild(group_id), AssignorChild(ASSIGNOR)
        self.workers = NodeWorkers(host, self.group, self.assignor)
        self.shards = GroupShards(host)
        self._deaths = Deaths(group_id, host.files)

    def start(self) -> None:
        """Start all children but the workers, and kill the processes of an earlier supervisor."""
        actors = (GroupChild, ShardChild, AssignorChild, WorkerChild)
        kinds = (*(each.kind for each in actors), SUPERVISOR)
        self._deaths.take_over(kinds)  # processes of other kinds belong to the launcher
        self.group.start(self._host)
        self.shards.start()
        self._host.files.write(NodeProcess(SUPERVISOR, SUPERVISOR, process_of(os.getpid())))
        self.assignor.start(self._host)

    @property
    def is_open(self) -> bool:
        """Whether the group and the shards are open, and the assignors are loaded."""
        return self.group.state == self.assignor.state == "running" and self.shards.all_run

    def start_due(self) -> None:
        """Restart children that have ended, once their back-off is over."""
        self.group.start_if_due(self._host)
        self.assignor.start_if_due(self._host)
        self.shards.start_due()
        self.workers.start_due()

    def look(self) -> None:
        """Probe all children, and kill those that do not answer in time."""
        self.group.look(self._host)
        self.shards.look()
        self.assignor.look(self._host)
        self.workers.look()

    def idle_seconds(self, now: float) -> float:
        """Return the time until the next check of any child."""
        return min(each.idle_seconds(now) for each in self._all)

    def find(self, address: Address) -> ChildProcess | None:
        """Return the child whose current process has this address."""
        key = address_key(address)
        for child in self._all:
            if child.address is not None and address_key(child.address) == key:
                return child
        return None

    def add_death(self, process: NodeProcess) -> None:
        """Add the process of a child that has just ended."""
        self._deaths.add(process, time.time_ns() // 1_000_000)

    def report_deaths(self) -> bool:
        """Report ended members to the group; return whether some wait for the end of an engine."""
        if (group := self.group.whereabouts(self.group.name).address) is None:
            return False  # reported once the group is open
        for report in self._deaths.take_ended():
            self._host.actor.send(group, report)
        return self._deaths.is_waiting

    def repeat_reports(self) -> None:
        """Tell the group, if it is open, which seats are left here, and the last ended members."""
        if (group := self.group.whereabouts(self.group.name).address) is not None:
            self.group.release_seats(self._host)
            for report in self._deaths.repeated():
                self._host.actor.send(group, report)

    def view(self) -> NodeView:
        """Return the state of all children."""
        group, assignor = self.group.view(), self.assignor.view()
        workers, shards = self.workers.views(), tuple(self.shards.views())
        return NodeView(os.getpid(), (group,), workers, (assignor,), shards)

    @property
    def _all(self) -> Iterator[ChildProcess]:
        others = chain(self.shards.children, self.workers.children)
        return chain((self.group, self.assignor), others)
