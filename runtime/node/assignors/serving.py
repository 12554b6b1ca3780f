"""The server assignors of users, in the processes that have groups.

A group computes in the process that writes its log, so no code of users may run there: it runs in a
sandbox, a child of that process, which is started when a group first needs it. All server assignors
share it. An assignor that raises, returns nonsense, is late, or takes its process with it has
failed for that target alone: the group's own computes instead, and says so in its log.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ....actors.assignors.built_in.catalogue import NO_ASSIGNORS, Computes
from ....actors.messages.assignors import ComputeAssignment, ComputeAssignmentReply
from ....actors.messages.computing import Assignment, Snapshot
from ....actors.shards.actor import OpenShard, ShardActor
from ....actors.shards.host_actor import HostActor, OpenGroup
from ....actors.shards.workers_group import WorkersGroupActor
from ....actors.transport.actor import Address
from ...cluster.spec import AssignorSpec
from .discovery import known_server_assignors
from .sandbox import Sandbox, SandboxEndedError

LOGGER = logging.getLogger(__name__)
SECONDS: Final = 5.0
"""How long an assignor may take for a target, or to be loaded: meanwhile its group may wait."""
NOBODY: Final = ""
"""The member for which they compute."""


class AssignorFailed(Exception):  # noqa: N818  # says what happened
    """A server assignor has not computed a target; the message says why."""


class ServerAssignors:
    """All server assignors of users that are installed, in one sandbox."""

    def __init__(self, spec: AssignorSpec, log_file: Path) -> None:
        """`log_file` gets their output."""
        self._spec, self._log_file = spec, log_file
        self._sandbox: Sandbox | None = None
        """None before the first computation, and after the sandbox has ended."""
        self._lock = Lock()
        """Held while one computes: the loop and the thread beside it may both want to."""

    def by_name(self) -> Mapping[str, Computes]:
        """Return what computes with each of them, by name."""
        return {name: partial(self._compute, name) for name in self._spec.names}

    def close(self) -> None:
        """End the sandbox."""
        if self._sandbox is not None:
            self._sandbox.end()
            self._sandbox = None

    def _compute(self, name: str, snapshot: Snapshot) -> Assignment:
        """Return the assignment of one of them; raises `AssignorFailed`."""
        with self._lock:
            try:
                answer = self._opened().ask(ComputeAssignment(snapshot, NOBODY), SECONDS)
            except SandboxEndedError as error:
                self.close()
                raise AssignorFailed(str(error)) from None
            if self._sandbox is not None and self._sandbox.is_full:
                self.close()
        assert isinstance(answer, ComputeAssignmentReply)  # noqa: S101  # as it was asked
        if answer.assignment is None:
            LOGGER.warning("server assignor %s has failed: %s", name, answer.error)
            raise AssignorFailed(answer.error)
        return answer.assignment

    def _opened(self) -> Sandbox:
        """Return the sandbox, started if there is none; raises `AssignorFailed`."""
        if self._sandbox is None:
            self._sandbox = Sandbox(self._spec, self._log_file)
            if why := self._sandbox.open(SECONDS):
                self.close()
                raise AssignorFailed(why)
        return self._sandbox


def find_servers(spec: AssignorSpec, log_file: Path) -> ServerAssignors:
    """Return the server assignors of users that are installed; `spec` is that of workers' ones."""
    names = tuple(known_server_assignors())
    return ServerAssignors(replace(spec, names=names, serves=True), log_file)


@dataclass(frozen=True, slots=True)
class Served:
    """To a process of groups, before all else: how server assignors of users are run."""

    assignors: AssignorSpec
    """Those of the node's workers, whose settings and memory limit count for them as well."""
    log_file: Path
    order: OpenGroup | OpenShard
    """What it is to open."""


class ServingActor(HostActor[Any]):
    """A process of groups, with server assignors of users."""

    _servers: ServerAssignors | None = None

    def receive(self, message: object, sender: Address) -> None:
        """Find the server assignors before the groups are opened; all else is as without them."""
        if isinstance(message, Served):
            self._servers = find_servers(message.assignors, message.log_file)
            message = message.order
        super().receive(message, sender)

    def users_assignors(self) -> Mapping[str, Computes]:
        """Return the server assignors of users by name."""
        return NO_ASSIGNORS if self._servers is None else self._servers.by_name()

    def stopping(self) -> None:
        """End the sandbox, and close the logs."""
        if self._servers is not None:
            self._servers.close()
        super().stopping()


class ServingGroupActor(ServingActor, WorkersGroupActor):
    """The process of the workers' group."""


class ServingShardActor(ServingActor, ShardActor):
    """The process of a shard."""

    title = "shard"
