"""What it costs the coordinator that all members of a large group leave, in any order."""

import gc
import time
from collections.abc import Sequence
from random import Random
from typing import Final

from fairlead.actors.group.group_shard import GroupShard
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.members import LEAVE_EPOCH, Heartbeat
from fairlead.actors.timing import Now
from fairlead.runtime.simulation.group.durable_state import MemoryLog
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.groups import member_id, settled

MEMBERS: Final = 10_000


def orders(members: int) -> dict[str, list[int]]:
    """Return the orders in which members may leave."""
    shuffled = list(range(members))
    Random(7).shuffle(shuffled)
    return {
        "ascending": list(range(members)),
        "descending": list(reversed(range(members))),
        "random": shuffled,
    }


def leaving(order: Sequence[int]) -> float:
    """Return the CPU seconds in which all members of a settled group leave."""
    group = settled(len(order))
    coordinator = GroupShard(group, WORKERS, GroupSettings(), OffsetLedger(MemoryLog()), 0)
    gc.collect()
    gc.freeze()
    begun = time.process_time()
    for number in order:
        request = Heartbeat("bench", member_id(number), LEAVE_EPOCH, "i", 1)
        coordinator.submit(request, "host", Now(0, 0))
        coordinator.advance(coordinator.ready(Now(0, 0)))
    taken_s = time.process_time() - begun
    assert not group.members
    return taken_s


def main() -> None:
    """Print the figure of each order."""
    for name, order in orders(MEMBERS).items():
        conditions = f"{MEMBERS} members one after the other, CPU, no log"
        tell(f"leaves.{name}.{MEMBERS}", leaving(order), "s", conditions=conditions)


if __name__ == "__main__":
    main()
