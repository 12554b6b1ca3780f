"""A group has the type of its members: those of one protocol at a time, in one log."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    ClassicHeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.commands import AddressedReply, CommandReply, GroupRequest
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    DeleteGroup,
    EndMember,
    PutConnector,
)
from fairlead.actors.shards.host_actor import GroupActor, GroupOpened, OpenGroup
from fairlead.events.group import Group
from fairlead.events.model import GroupState, GroupType
from fairlead.runtime.interfaces.cli.logs.narrator import Narrator
from fairlead.runtime.interfaces.cli.output.printing import FactList
from fairlead.runtime.interfaces.cli.tables.groups import tabulate_group
from fairlead.runtime.interfaces.replies.building.groups import describe_group, summarize_group
from fairlead_tests.actor_system import Running
from fairlead_tests.classic.driver import offers
from fairlead_tests.coordination.driver import CoordinatorDriver

ASK = 10.0


class TypedDriver(CoordinatorDriver):
    """A driver of a group that may be of either type."""

    def open(self) -> None:
        """Begin anew from the log, as another process."""
        super().open()
        ids, ledger = map(str, count()), OffsetLedger(self.offsets)
        settings, number = self.settings, self.coordinator.coordinator_epoch
        self.shard = GroupShard(
            self.group,
            WORKERS,
            settings,
            ledger,
            self.now_ms,
            CoordinatorProcess(number, lambda: next(ids)),
        )
        self.coordinator = self.shard

    def ask(self, request: GroupRequest) -> list[AddressedReply]:
        """Have anything decided; returns all that is said."""
        self.shard.submit(request, "someone", self.now)
        return list(drain(self.shard, self, self.now))

    def lapse(self, milliseconds: int) -> list[AddressedReply]:
        """Let time pass for the workers and for the group."""
        self.now_ms += milliseconds
        self.shard.run_timers(self.now)
        return list(drain(self.shard, self, self.now))

    def first(self) -> JoinGroupReply:
        """Have a classic member in the group's next generation."""
        self.ask(joining())
        (said,) = self.lapse(3_000)
        assert isinstance(said.reply, JoinGroupReply)
        return said.reply


def joining(member_id: str = "") -> JoinGroup:
    return JoinGroup(
        "connect", member_id, "game", offers("chess"), 10_000, 60_000, asks_for_id=False
    )


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[TypedDriver]:
    driver = TypedDriver.at(tmp_path)
    assert isinstance(driver, TypedDriver)
    yield driver
    driver.close()


def test_a_classic_group_waits_three_seconds_unless_its_setting_says_otherwise(
    driver: TypedDriver,
) -> None:
    assert driver.ask(joining()) == []
    assert driver.lapse(2_999) == []
    assert len(driver.lapse(1)) == 1
    name = "group.initial.rebalance.delay.ms"
    (said,) = driver.ask(ConfigureGroup("connect", {name: "0"}))
    assert isinstance(said.reply, CommandReply)
    assert said.reply.error is Error.NONE
    driver.ask(LeaveGroup("connect", (Leaver("-0"),)))
    assert len(driver.ask(joining())) == 1


def test_a_copy_of_what_a_member_asked_before_is_dropped_unanswered(driver: TypedDriver) -> None:
    member_id = driver.first().member_id
    beat = ClassicHeartbeat("connect", member_id, 1, number=7)
    assert len(driver.ask(beat)) == 1
    for number in (7, 6):
        assert driver.ask(replace(joining(member_id), number=number)) == []
    assert len(driver.ask(replace(beat, number=8))) == 1
    assert len(driver.ask(replace(beat, number=0))) == 1, "who numbers nothing is not held to it"
    static = replace(joining(), instance_id="i", number=70)
    driver.ask(static)
    waits = driver.group.end
    assert (driver.ask(static), driver.group.end) == ([], waits), "it takes no seat over again"


def test_a_classic_member_asks_for_a_session_within_the_bounds_of_the_group(
    driver: TypedDriver,
) -> None:
    bounds = {"group.min.session.timeout.ms": "100", "group.max.session.timeout.ms": "200"}
    driver.ask(ConfigureGroup("connect", bounds))
    for session_ms in (99, 201):
        (said,) = driver.ask(replace(joining(), session_timeout_ms=session_ms))
        assert isinstance(said.reply, JoinGroupReply)
        told = said.reply.error, said.reply.message
        message = f"the session timeout is {session_ms} ms: allowed is 100 to 200 ms"
        assert told == (Error.INVALID_SESSION_TIMEOUT, message)
    assert driver.ask(replace(joining(), session_timeout_ms=100)) == [], "it waits for others"


def test_a_member_is_gone_as_soon_as_its_process_is_but_a_static_seat_waits(
    driver: TypedDriver,
) -> None:
    first = driver.first()
    driver.ask(SyncGroup("connect", first.member_id, first.generation))
    assert driver.ask(replace(joining(), instance_id="seat")) == [], "it waits for the first"
    told, said = driver.ask(EndMember("connect", first.member_id, ""))
    assert isinstance(told.reply, JoinGroupReply)
    assert isinstance(said.reply, CommandReply)
    driver.ask(SyncGroup("connect", told.reply.member_id, told.reply.generation))
    assert driver.group.classic is not None
    (seat,) = driver.group.classic.members
    assert seat.instance_id == "seat"
    driver.ask(EndMember("connect", seat.member_id, ""))
    (beat,) = driver.ask(ClassicHeartbeat("connect", seat.member_id, told.reply.generation))
    assert beat.reply == ClassicHeartbeatReply(Error.NONE)


def test_who_speaks_the_other_protocol_is_refused_while_there_are_members(
    driver: TypedDriver,
) -> None:
    driver.ask(joining())  # it waits, and is in no record yet
    (said,) = driver.ask(driver.joining("W1"))
    assert isinstance(said.reply, HeartbeatReply)
    assert said.reply.error is Error.GROUP_ID_NOT_FOUND
    driver.lapse(3_000)
    (said,) = driver.ask(driver.joining("W1"))
    assert isinstance(said.reply, HeartbeatReply)
    assert (said.reply.error, driver.group.members) == (Error.GROUP_ID_NOT_FOUND, {})


def test_a_group_of_ours_refuses_classic_members(driver: TypedDriver) -> None:
    driver.ask(driver.joining("W1"))
    (said,) = driver.ask(joining())
    assert isinstance(said.reply, JoinGroupReply)
    assert said.reply.error is Error.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_changes_its_type_and_its_epochs_go_on(driver: TypedDriver) -> None:
    joined = driver.first()
    driver.ask(LeaveGroup("connect", (Leaver(joined.member_id),)))
    assert (driver.group.type, driver.group.state) == (GroupType.CLASSIC, GroupState.EMPTY)
    driver.ask(driver.joining("W1"))
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, 3)
    driver.open()
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, 3)
    driver.ask(driver.request("W1", -1))
    assert driver.first().generation == driver.group.group_epoch == 5


def test_a_classic_group_is_deleted_once_it_is_empty_and_its_next_life_counts_on(
    driver: TypedDriver,
) -> None:
    joined = driver.first()
    for error in (Error.NON_EMPTY_GROUP, Error.NONE):
        (said,) = driver.ask(DeleteGroup("connect"))
        assert isinstance(said.reply, CommandReply)
        assert said.reply.error is error
        driver.ask(LeaveGroup("connect", (Leaver(joined.member_id),)))
    assert driver.group.state is GroupState.DEAD
    driver.open()
    assert driver.first().generation == 3


def test_connectors_are_the_groups_whatever_its_type(driver: TypedDriver) -> None:
    driver.first()
    (said,) = driver.ask(PutConnector("connect", "flights", {"name": "flights"}))
    assert isinstance(said.reply, CommandReply)
    assert (said.reply.error, [*driver.group.connectors]) == (Error.NONE, ["flights"])
    assert driver.group.state is GroupState.ASSIGNING


def test_both_sides_write_into_one_log_in_the_order_in_which_they_decide(
    driver: TypedDriver,
) -> None:
    joined = driver.first()
    driver.shard.submit(PutConnector("connect", "a", {"name": "a"}), "someone", driver.now)
    sync = SyncGroup("connect", joined.member_id, 1)
    driver.shard.submit(sync, "someone", driver.now)
    driver.shard.submit(PutConnector("connect", "b", {"name": "b"}), "someone", driver.now)
    end = driver.group.end
    assert len(drain(driver.shard, driver, driver.now)) == 3
    assert driver.control.end == end
    told: Group = driver.group
    driver.open()
    assert driver.group == replace(told, record_parts=driver.group.record_parts)


@pytest.mark.cluster
def test_two_members_share_a_group_on_real_processes(actor_system: Running) -> None:
    system = actor_system.system
    group = system.create(GroupActor, "group")
    settings = GroupSettings(initial_delay_ms=0)
    opened = system.ask(group, OpenGroup("connect", actor_system.folder / "g", settings), ASK)
    assert isinstance(opened, GroupOpened)
    first = system.ask(group, joining(), ASK)
    assert isinstance(first, JoinGroupReply)
    with system.private() as line, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(line.ask, group, joining(), ASK)
        while True:
            beat = ClassicHeartbeat("connect", first.member_id, 1)
            reply = system.ask(group, beat, ASK)
            assert isinstance(reply, ClassicHeartbeatReply)
            if reply.error is not Error.NONE:
                break
        again = system.ask(group, joining(first.member_id), ASK)
        second = waiting.result(ASK)
        assert isinstance(again, JoinGroupReply)
        assert isinstance(second, JoinGroupReply)
        assert again.generation == second.generation == 2
        given = {first.member_id: b"one", second.member_id: b"two"}
        system.ask(group, SyncGroup("connect", first.member_id, 2, assignments=given), ASK)
        synced = line.ask(group, SyncGroup("connect", second.member_id, 2), ASK)
    assert isinstance(synced, SyncGroupReply)
    assert (synced.error, synced.assignment) == (Error.NONE, b"two")


def test_a_group_is_told_with_its_type_and_its_generation(driver: TypedDriver) -> None:
    joined = driver.first()
    told = describe_group(driver.group)
    assert (told.type, told.state, summarize_group(driver.group).members) == (
        "classic",
        "Assigning",
        1,
    )
    assert told.generation is not None
    assert told.generation.members == [joined.member_id]
    facts = tabulate_group(told)[0]
    assert isinstance(facts, FactList)
    lead = f"1 (member-joined {joined.member_id}), game chess, led by {joined.member_id}"
    assert ("Generation", f"{lead}: {joined.member_id}") in facts.pairs
    assert driver.group.classic is not None
    assert Narrator().tell(driver.group.classic) == (
        f"classic generation 1: member-joined {joined.member_id}; game chess, led by"
        f" {joined.member_id}, to be assigned: {joined.member_id}"
    )
    driver.ask(LeaveGroup("connect", (Leaver(joined.member_id),)))
    assert Narrator().tell(driver.group.classic) == (
        f"classic generation 2: member-left {joined.member_id}; nobody is in it"
    )
