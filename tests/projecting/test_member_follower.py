"""What a member reads by key is what all of the log says of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.entries.codec import decode, encode, restore
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.reader import LogReader, Newer
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import (
    NOTHING,
    MemberState,
    Resource,
    Resources,
    RunState,
    TaskConfig,
    Token,
)
from fairlead.events.record_parts import RecordParts, lay_out
from fairlead.events.records import (
    ConfiguredPart,
    ConnectorConfig,
    CurrentAssignment,
    CurrentPart,
    MemberMetadata,
    Record,
    TargetAssignment,
    TargetPart,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from fairlead.projections.follow.member import MemberFollower
from fairlead.projections.launches import Launch, launches
from fairlead_tests.golden.fixtures import generations, read_lines
from fairlead_tests.log.samples import TIME_MS

GROUP = "connect"
PARTS = {TYPE_OF[kind].number for kind in (ConfiguredPart, TargetPart, CurrentPart)}
LIVES = [
    pytest.param(path, marks=marks, id=f"{path.parent.name}-{path.stem}")
    for age, folder in enumerate(reversed(generations()))
    for marks in [[pytest.mark.soak] * (age > 1)]
    for path in sorted(folder.glob("*.control"))
]
"""Those of older generations are the soak's: that these are decoded is seen elsewhere."""


def batches(entries: Sequence[Entry], rng: Random) -> Iterator[Sequence[Entry]]:
    """Yield the entries in batches; none ends between a fact's parts and their head."""
    start = 0
    for end, entry in enumerate(entries, 1):
        if entry.type not in PARTS and (rng.random() < 0.15 or end == len(entries)):
            yield entries[start:end]
            start = end


def launched(group: Group, member_id: str) -> dict[Resource, Launch]:
    member = group.members.get(member_id)
    held = member.current.assigned.keys() | member.current.pending.keys() if member else ()
    return launches(group, member_id, frozenset(held))


def told(group: Group, member_id: str, reported: Resources) -> tuple[object, ...]:
    """Return what a worker asks of its group."""
    member, target = group.members.get(member_id), group.target
    return (
        member,
        launched(group, member_id),
        {each: group.statuses.get(each) for each in reported},
        {each.connector: group.connectors.get(each.connector) for each in reported},
        (target.assignor, target.assignor_version, target.assignor_metadata, target.error),
        group.end,
    )


@pytest.mark.parametrize("path", LIVES)
def test_each_member_and_a_stranger_know_of_themselves_what_the_whole_log_says(
    path: Path, tmp_path: Path
) -> None:
    entries, rng = read_lines(path), Random(str(path.stem))
    records = [decode(each) for each in entries]
    members = (each.member_id for each in records if isinstance(each, MemberMetadata))
    ids = sorted({*members, "nobody"})  # who is no member reads that of itself
    resources = [each.resource for each in records if isinstance(each, TaskStatus)]
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        readers = [MemberFollower(GROUP, each, log) for each in ids]
        for batch in batches(entries, rng):
            log.append(log.end, [NewEntry(*each[1:4], each.value) for each in batch], TIME_MS)
            if rng.random() < 0.1:
                log.trim(rng.randrange(log.end))
            whole = restore(GROUP, *log.load())
            reported = frozenset(rng.sample(resources, len(resources) // 2))
            for member_id, reader in zip(ids, readers, strict=True):
                if rng.random() < 0.5:
                    continue
                before = launched(reader.group, member_id)
                reader.watch(reported)
                reader.catch_up()
                changed = reader.take_changed()
                now = launched(whole, member_id)
                assert told(reader.group, member_id, reported) == told(whole, member_id, reported)
                assert changed >= {each for each in now if now[each] != before.get(each)}
                reader.catch_up()
                assert reader.take_changed() == frozenset()


RESOURCES = st.frozensets(
    st.builds(Resource, st.integers(0, 60).map("c{}".format), st.integers(-1, 3)), max_size=120
)


def step(resources: Resources, number: int) -> CurrentAssignment:
    pending = {each: number for each in resources if each.task == 1}
    assigned = dict.fromkeys(resources - pending.keys(), number)
    return CurrentAssignment("W1", number, 0, MemberState.UNREVOKED, assigned, pending)


@given(steps=st.lists(st.tuples(RESOURCES, st.booleans()), max_size=6))
@settings(max_examples=15)
def test_a_member_with_many_resources_takes_its_step_from_the_shards(
    steps: list[tuple[Resources, bool]],
) -> None:
    parts = RecordParts()
    with (
        TemporaryDirectory() as folder,
        GroupLog.open_writer(Path(folder) / "log", GROUP, reserve_bytes=0) as log,
    ):
        reader = MemberFollower(GROUP, "W1", log)
        for number, (resources, is_looked_at) in enumerate(steps, 1):
            record = step(resources, number)
            (laid,) = lay_out(parts, [record])
            for each in laid.parts:
                parts.assemble(each)
            log.append(log.end, [encode(each) for each in laid.parts], TIME_MS)
            if is_looked_at or number == len(steps):
                reader.catch_up()
                assert reader.group.members["W1"].current == record
                assert reader.group.owner == dict.fromkeys(resources, "W1")


def write(log: GroupLog, *records: Record) -> None:
    log.append(log.end, [encode(each) for each in records], TIME_MS)


def config(connector: str, version: int = 1) -> ConnectorConfig:
    return ConnectorConfig(connector, {"name": connector, "v": str(version)}, version, TIME_MS)


def test_what_others_do_is_no_concern_of_a_member(tmp_path: Path) -> None:
    mine = Resource("mine")
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        write(
            log,
            MemberMetadata("W1"),
            CurrentAssignment("W1", 1, 0, MemberState.STABLE, {mine: 1}, {}),
            *(config(each) for each in ("mine", "theirs")),
        )
        reader = MemberFollower(GROUP, "W1", log)
        reader.catch_up()
        assert reader.take_changed() == {mine}
        for number in range(50):
            theirs = Resource(f"c{number}")
            write(
                log,
                MemberMetadata(f"other {number}"),
                CurrentAssignment(f"other {number}", 1, 0, MemberState.STABLE, {theirs: 1}, {}),
                config(f"c{number}"),
                TaskStatus(theirs, RunState.RUNNING, "w2", Token(1, 1), TIME_MS),
            )
        reader.catch_up()
        assert reader.take_changed() == frozenset()
        assert reader.group.members.keys() == {"W1"}
        assert reader.group.connectors.keys() == {"mine"}
        assert (reader.group.statuses, reader.group.end) == ({}, log.end)


def test_a_config_that_changes_concerns_all_that_runs_of_it_here(tmp_path: Path) -> None:
    held = [Resource("c"), Resource("c", 0), Resource("d")]
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        grants = dict.fromkeys(held, 1)
        write(log, MemberMetadata("W1"), config("c"), config("d"))
        write(log, CurrentAssignment("W1", 1, 0, MemberState.STABLE, grants, {}))
        reader = MemberFollower(GROUP, "W1", log)
        reader.catch_up()
        reader.take_changed()
        write(log, config("c", 2))
        reader.catch_up()
        assert reader.take_changed() == {Resource("c"), Resource("c", 0)}
        write(log, TaskConfigs("d", 1, (TaskConfig({"task": "0"}, 1),)))
        reader.catch_up()
        assert reader.take_changed() == {Resource("d")}


class CountingLog:
    """A log that counts the keys that are looked up."""

    def __init__(self, log: GroupLog) -> None:
        self.looked_up = 0
        self._log = log

    def newer(self, offsets: Mapping[bytes, int], fresh: Collection[bytes], since: int) -> Newer:
        self.looked_up += len(fresh)
        return self._log.newer(offsets, fresh, since)

    def close(self) -> None:
        self._log.close()


def test_what_the_log_does_not_hold_yet_is_looked_up_once(tmp_path: Path) -> None:
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        write(log, MemberMetadata("W1"))
        write(log, CurrentAssignment("W1", 1, 0, MemberState.STABLE, {Resource("c"): 1}, {}))
        counting = CountingLog(log)
        reader = MemberFollower(GROUP, "W1", counting)
        reader.catch_up()
        asked = counting.looked_up
        assert asked == len(
            ["seat", "step", "target", "generation", "config", "split", "target state"]
        )
        write(log, MemberMetadata("another"))
        reader.catch_up()
        assert (counting.looked_up, reader.group.connectors) == (asked, {})
        write(log, config("c"))
        reader.catch_up()
        assert (counting.looked_up, set(reader.group.connectors)) == (asked, {"c"})


def test_what_is_no_concern_any_more_is_forgotten(tmp_path: Path) -> None:
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        write(log, MemberMetadata("W1"), config("c"))
        reported = frozenset({Resource("c", 0)})
        write(log, TaskStatus(Resource("c", 0), RunState.RUNNING, "w1", Token(1, 1), TIME_MS))
        reader = MemberFollower(GROUP, "W1", log)
        reader.watch(reported)
        reader.catch_up()
        assert reader.group.statuses.keys() == reported
        assert reader.group.connectors.keys() == {"c"}
        reader.watch(NOTHING)
        assert (reader.group.statuses, reader.group.connectors) == ({}, {})


def test_a_log_that_was_trimmed_meanwhile_is_read_on(tmp_path: Path) -> None:
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        write(log, MemberMetadata("W1"), config("c"))
        write(log, CurrentAssignment("W1", 1, 0, MemberState.STABLE, {Resource("c"): 1}, {}))
        reader = MemberFollower(GROUP, "W1", log)
        reader.catch_up()
        write(log, Tombstone(ConnectorConfig, ("c",)), TargetAssignment(2, {}, "balanced"))
        log.trim(log.end)
        reader.catch_up()
        assert (reader.group.connectors, reader.group.target.assignor) == ({}, "balanced")
        assert reader.group.members["W1"].current.assigned == {Resource("c"): 1}


def test_a_reader_of_another_process_sees_what_is_durable(tmp_path: Path) -> None:
    with GroupLog.open_writer(tmp_path / "log", GROUP, reserve_bytes=0) as log:
        write(log, MemberMetadata("W1", url="http://w1"))
    with LogReader.open(tmp_path / "log", GROUP) as log:
        reader = MemberFollower(GROUP, "W1", log)
        reader.catch_up()
        assert reader.group.members["W1"].metadata.url == "http://w1"
