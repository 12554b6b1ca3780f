"""Groups of any size for the benchmarks, built with the real code."""

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.soft_state import SoftState
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import (
    NOTHING,
    Cause,
    ClientAssignor,
    MemberState,
    Resource,
    Resources,
    Why,
)
from fairlead.events.records import (
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
)

TASKS = 10
ASSIGNORS = (ClientAssignor("balanced", metadata=b'{"capacity":1}'),)


def member_id(number: int) -> str:
    """Return a member id with a realistic length."""
    return f"00000000-0000-4000-8000-{number:012}"


def share(number: int) -> Resources:
    """Return the ten tasks of a member."""
    first = number * TASKS
    return frozenset(
        Resource(f"c{task // 100}", task % 100) for task in range(first, first + TASKS)
    )


def history(members: int) -> list[Record]:
    """Return the records of a settled group of so many members with ten tasks each."""
    shares = {member_id(number): share(number) for number in range(members)}
    everything = NOTHING.union(*shares.values())
    records: list[Record] = [ConnectorsTasksMetadata(everything)]
    for number in range(members):
        name = member_id(number)
        records += [
            MemberMetadata(name, "i", number + 1, 60_000, ASSIGNORS, url=f"h{number}:8083/w1"),
            GroupMetadata(number + 1, Cause(Why.MEMBER_JOINED, name), 1_700_000_000_000),
        ]
    records.append(TargetAssignment(members, shares, "balanced"))
    records += [
        CurrentAssignment(name, members, 0, MemberState.STABLE, dict.fromkeys(given, members), {})
        for name, given in shares.items()
    ]
    return records


def settled(members: int) -> Group:
    """Return a settled group of so many members with ten tasks each."""
    group = Group("bench")
    for record in history(members):
        evolve(group, record, group.end)
    return group


def resting() -> SoftState:
    """Return the soft state of a group with nothing in flight."""
    return SoftState(GroupSettings())


def heartbeat(group: Group, number: int, owned: Resources | None = None) -> Heartbeat:
    """Return a member's next heartbeat, with its owned resources only if given."""
    name = member_id(number)
    epoch = group.members[name].current.member_epoch
    return Heartbeat(
        "bench", name, epoch, "i", 1, owned=tuple(owned) if owned is not None else None
    )
