"""A group whose members may speak either protocol: what holds for one holds for both."""

import pytest

from fairlead.actors.group.group_shard import GroupShard
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Now
from fairlead.events.group import Group
from fairlead.runtime.simulation.group.durable_state import MemoryLog


@pytest.mark.parametrize("call", ["extend_timers", "grant_sessions"])
def test_time_for_which_a_process_was_held_up_is_nobodys_fault_of_either_protocol(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = GroupShard(Group("g"), WORKERS, GroupSettings(), OffsetLedger(MemoryLog()), 0)
    late: list[int] = []
    for queue in (
        shard.state.timers.members._sessions,
        shard.state.timers.members._revocations,
        shard.classic.coordinator._sessions,
        shard.classic._mixed._deadlines,
    ):
        monkeypatch.setattr(queue, "extend", late.append)
    if call == "extend_timers":
        shard.extend_timers(7)
    else:
        shard.grant_sessions(7, Now(0, 0))
    assert late == [7, 7, 7, 7]
