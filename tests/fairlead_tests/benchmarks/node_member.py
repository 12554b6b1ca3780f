# pyright: basic
"""A worker of a node, which speaks with the group by actor messages as any worker of its host."""

import time
from dataclasses import dataclass, field
from typing import Any

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitReply,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
)
from fairlead.actors.transport.system import connect
from fairlead.events.commits import Advance, Commit, CommitId, Manifest
from fairlead.events.group import token_of
from fairlead.events.model import Resource, Token
from fairlead.runtime.cluster.messages import SUPERVISOR, Whereabouts, WhereIs
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead_tests.cluster.node import GROUP
from fairlead_tests.stores.nodes import ClusterNode

ANSWER_SECONDS = 5.0
PAUSE_SECONDS = 0.05
PLACE = {"part": 0}


@dataclass
class NodeMember:
    """A member of the group on a node without workers; all work is its own."""

    node: ClusterNode
    name: str = "bench"
    epoch: int = 0
    owned: frozenset[Resource] = frozenset()
    _sequence: int = 0
    _coordinator: int = -1
    _batch: int = 0
    _offset: Any = None
    _token: Token | None = None
    _line: Any = field(init=False)

    def __post_init__(self) -> None:
        self._system = connect(RunFolder(self.node.folder).system_address())
        self._private = self._system.private()
        self._line = self._private.__enter__()
        supervisor = self._system.named(SUPERVISOR)
        found = self._line.ask(supervisor, WhereIs(GROUP), ANSWER_SECONDS)
        assert isinstance(found, Whereabouts)
        self._group = found.address

    def close(self) -> None:
        """Leave the actor system."""
        self._private.__exit__(None, None, None)
        self._system.close()

    def works_on(self, connector: str) -> None:
        """Heartbeat until the connector has one task, and this member runs it."""
        task = Resource(connector, 0)
        while task not in self.owned:
            self._beat()
            token = token_of(self.node.group(), self.name, Resource(connector))
            if token is not None and task not in self.owned:
                self._ask(PutTaskConfigs(GROUP, self.name, connector, token, ({},)))
            time.sleep(PAUSE_SECONDS)
        self._beat()
        self._token = token_of(self.node.group(), self.name, task)

    def commit(self, connector: str) -> float:
        """Commit the next batch; return how long that took, in seconds."""
        assert self._token is not None
        step = Advance(PLACE, self._offset, {"row": self._batch})
        batch = CommitId(connector, 0, self._token, self._batch)
        manifest = Manifest("/nowhere", "staged", 0, 0, 0)
        message = CommitOffsets(GROUP, self.name, (Commit(batch, (step,), manifest, 1),))
        begun = time.perf_counter()
        reply = self._ask(message)
        taken = time.perf_counter() - begun
        assert isinstance(reply, CommitReply), reply
        assert [each.error for each in reply.verdicts] == [Error.NONE], reply
        self._batch, self._offset = self._batch + 1, step.end
        return taken

    def _beat(self) -> None:
        self._sequence += 1
        said: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "server_assignor": "uniform"}
        said |= {"owned": tuple(self.owned), "coordinator_epoch": self._coordinator}
        beat = Heartbeat(GROUP, self.name, self.epoch, self.name, self._sequence, **said)
        reply = self._ask(beat)
        if isinstance(reply, HeartbeatReply):
            self.epoch, self._coordinator = reply.member_epoch, reply.coordinator_epoch
            if reply.assignment is not None:
                self.owned = frozenset(reply.assignment)

    def _ask(self, message: object) -> object:
        return self._line.ask(self._group, message, ANSWER_SECONDS)
