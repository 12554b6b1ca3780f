"""What a restart costs: decoding and folding records, and recovery through the view."""

import gc
import random
import tempfile
import time
from pathlib import Path

from fairlead.events.entries.codec import encode, fold, restore
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, MemberState, Resource, Why
from fairlead.events.records import CurrentAssignment, GroupMetadata
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.benchmarks.groups import history, member_id

SMALL = 200_000
STEPS = 50_000
HISTORY = 1_000_000
MEMBERS = 1_000
BATCH = 1_000


def entries(records: list[NewEntry]) -> list[Entry]:
    """Return the entries as a log would give them back."""
    return [
        Entry(offset, each.type, each.version, each.key, 0, each.value)
        for offset, each in enumerate(records)
    ]


def rate(read: list[Entry]) -> float:
    """Return how many entries a second are decoded and folded."""
    group = Group("bench")
    gc.collect()
    gc.disable()
    begun = time.perf_counter()
    fold(group, read)
    taken = time.perf_counter() - begun
    gc.enable()
    return len(read) / taken


def small() -> list[Entry]:
    """Return bumps of the group epoch."""
    cause = Cause(Why.MEMBER_JOINED, "127.0.0.1:8083/w1")
    return entries([encode(GroupMetadata(epoch, cause, 1)) for epoch in range(SMALL)])


def steps() -> list[Entry]:
    """Return current-assignment records of nine tasks, of a hundred members in turn."""
    made: list[NewEntry] = []
    for number in range(STEPS):
        member = number % 100
        assigned = {Resource(f"c{member}", task): number for task in range(9)}
        step = CurrentAssignment(
            member_id(member), number, number - 1, MemberState.STABLE, assigned, {}
        )
        made.append(encode(step))
    return entries(made)


def recovery() -> float:
    """Return the seconds to open a log of a million records and rebuild its group."""
    settled = [encode(record) for record in history(MEMBERS)]
    steps_only = [entry for entry in settled if entry.type == encode_type()]
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        log = GroupLog.open_writer(Path(folder) / "log", "bench")
        log.append(0, settled, 0)
        while log.end < HISTORY:
            log.append(log.end, chance.choices(steps_only, k=BATCH), 0)
        log.close()
        gc.collect()
        gc.disable()
        begun = time.perf_counter()
        log = GroupLog.open_writer(Path(folder) / "log", "bench")
        group = restore("bench", *log.load())
        taken = time.perf_counter() - begun
        gc.enable()
        assert len(group.members) == MEMBERS
        assert len(group.owner) == MEMBERS * 10
        log.close()
    return taken


def encode_type() -> int:
    """Return the type number of a current assignment."""
    return encode(CurrentAssignment("", 0, 0, MemberState.STABLE, {}, {})).type


def main() -> None:
    """Print the figures."""
    quiet = "collector off, entries in memory"
    tell("replay.small", rate(small()), "records/s", conditions=quiet)
    tell("replay.current_assignment.9", rate(steps()), "records/s", conditions=quiet)
    shape = f"{MEMBERS} members, {MEMBERS * 10} tasks, {HISTORY} records, open included"
    tell("recovery.view", recovery(), "s", conditions=shape)


if __name__ == "__main__":
    main()
