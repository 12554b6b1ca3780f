"""One worker in a separate process and thread, which hangs once it has a grant.

`python hung_worker.py FOLDER [NAME]...`: what it is granted, maybe nothing. It says what it was
granted before it hangs, and comes to again long after the worker's session.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from thespian.actors import ActorSystem

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.assignors import DescribeAssignors, DescribeAssignorsReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.transport.actor import Actor, Address
from fairlead.actors.worker.instructions import Timing
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import ClientAssignor, Resource
from fairlead.runtime.cluster.messages import AssignorAt, StartWorker
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.worker.actor import WorkerActor

SESSION_MS = 1_500
GROUP = "connect"
GRANTED = frozenset(map(Resource, sys.argv[2:]))


class Granting(Actor):
    """Serves a group with one member, until that has acknowledged its grant."""

    def __init__(self) -> None:
        super().__init__()
        self._is_owned = False

    def receive(self, message: object, sender: Address) -> None:
        """Grant; answer no more once that was reported, and tell whoever asks whether it was.

        It stands for the worker's assignors as well.
        """
        if isinstance(message, DescribeAssignors):
            self.send(sender, DescribeAssignorsReply(message.number, (ClientAssignor("balanced"),)))
            return
        if not isinstance(message, Heartbeat):
            self.send(sender, self._is_owned)
            return
        self._is_owned = message.member_epoch > 0 and frozenset(message.owned or ()) == GRANTED
        if not self._is_owned:
            self.send(sender, answer(message))


def answer(request: Heartbeat) -> HeartbeatReply:
    """Return the grant."""
    asked = (request.incarnation, request.sequence)
    return HeartbeatReply(Error.NONE, request.member_id, 1, *asked, assignment=GRANTED)


def main(folder: Path) -> None:
    """Run until the worker has reported what it was granted, then hang."""
    timing = Timing(200, SESSION_MS, 10_000, 300)
    node = NodeSpec(folder, GROUP, "here", ("w",), GroupSettings(), timing, EngineSpec("noop"))
    run = RunFolder(folder)
    run.path.mkdir()
    run.key()
    for name in ("control", "offsets"):
        GroupLog.open_writer(node.group_folder(GROUP) / name, GROUP).close()
    system: Any = ActorSystem("simpleSystemBase", logDefs=False, transientUnique=True)
    group, worker = system.createActor(Granting), system.createActor(WorkerActor)
    system.tell(worker, StartWorker("w", node, group, AssignorAt(group, os.getpid())))
    while not system.ask(group, "done?", 0.2):
        pass
    print(" ".join(["granted", *map(str, GRANTED)]), flush=True)
    time.sleep(3 * SESSION_MS / 1000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
