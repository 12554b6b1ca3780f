"""A connect group becomes classic again, or does not: rules 20 to 30 (PROTOCOL §16)."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.connect import decode_assignment
from fairlead.actors.messages.classic import JoinGroupReply, Leaver, SyncGroup
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.group import NO_SCHEDULE, token_of
from fairlead.events.model import Cause, ClientAssignor, GroupState, GroupType, Resource, Why
from fairlead.events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.classic.workers import told
from fairlead_tests.decider import resource, resources
from fairlead_tests.translation.driver import CLASSIC_SESSION_MS, MixedDriver, given, held

ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


def configure(driver: MixedDriver, policy: str) -> None:
    driver.send(ConfigureGroup("connect", {"group.migration.policy": policy}))


def settles(driver: MixedDriver, **runs: str) -> dict[str, str]:
    """Have all members do as they are told until nothing moves; returns what each runs."""
    now = {each: runs.get(each, "") for each in driver.group.translated}
    for _ in range(12):
        end = driver.group.end
        for member_id in sorted(now):
            reply = driver.joins(member_id, now[member_id], **_kept(driver, member_id))
            came, went = given(driver.syncs(member_id, reply.generation))
            now[member_id] = " ".join(
                sorted({*now[member_id].split(), *came.split()} - {*went.split()})
            )
        for member_id in sorted(driver.group.members.keys() - now.keys()):
            driver.beats(member_id)
        if driver.group.end == end:
            return now
    raise AssertionError("the group does not come to rest")


def _kept(driver: MixedDriver, member_id: str) -> dict[str, object]:
    metadata = driver.group.members[member_id].metadata
    return {"instance_id": metadata.instance_id, "url": metadata.url}


def mixed(driver: MixedDriver, **fields: object) -> tuple[str, str]:
    """A mixed group at rest: two classic workers and W1."""
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1", **fields)
    settles(driver, **{one: ALL_A, two: ALL_B})
    assert driver.group.state is GroupState.STABLE
    return one, two


def test_rule_20_a_heartbeat_at_a_classic_members_epoch_makes_it_one_of_the_connect_protocol(
    driver: MixedDriver,
) -> None:
    one, two = mixed(driver)
    kept = dict(driver.group.members[one].current.assigned)
    assert driver.heartbeat_reply(driver.request(one, 99)).error is Error.FENCED_MEMBER_EPOCH
    owned = tuple(sorted(kept))
    said = driver.request(one, server_assignor="uniform", rebalance_timeout_ms=60_000, owned=owned)
    reply = driver.heartbeat_reply(said)
    assert (reply.error, reply.member_epoch) == (Error.NONE, 3)
    assert driver.group.translated == {two}
    assert driver.group.members[one].current.assigned == kept, "and nothing moves"
    assert driver.classic_beat(one) is Error.UNKNOWN_MEMBER_ID
    assert driver.syncs(one, 3).error is Error.UNKNOWN_MEMBER_ID
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.group.type is GroupType.CONNECT, "it counts as one of them"
    driver.reopen()


def test_rule_22_a_classic_process_takes_the_seat_of_a_connect_one_that_is_there(
    driver: MixedDriver,
) -> None:
    mixed(driver, instance_id="i")
    driver.modern_joins("W2")
    epoch = driver.group.group_epoch
    before = {each: token_of(driver.group, "W1", each) for each in held_by(driver, "W1")}
    reply = driver.joins("", instance_id="i", url="http://W1")
    assert reply.error is Error.NONE
    assert driver.group.group_epoch == epoch, "no new target: the seat has its share"
    assert "W1" not in driver.group.members
    member_id = reply.member_id
    share = driver.group.share_of(member_id)
    assert set(driver.group.members[member_id].current.assigned) == share
    for each, token in before.items():
        now = token_of(driver.group, member_id, each)
        assert now is None or (token is not None and now > token), "the other is fenced"
    fenced = driver.heartbeat_reply(driver.request("W1", epoch))
    assert fenced.error is Error.UNKNOWN_MEMBER_ID


def held_by(driver: MixedDriver, member_id: str) -> frozenset[Resource]:
    return frozenset(driver.group.members[member_id].current.assigned)


def test_rule_22_as_the_last_of_its_kind_that_seat_converts_the_group_without_a_round(
    driver: MixedDriver,
) -> None:
    one, two = mixed(driver, instance_id="i")
    share = held(driver, "W1")
    epoch = driver.group.group_epoch
    reply = driver.joins("", instance_id="i", url="http://W1")
    assert (reply.error, reply.generation, reply.leader) == (Error.NONE, epoch, "")
    assert (driver.group.type, driver.group.state) == (GroupType.CLASSIC, GroupState.STABLE)
    told = driver.syncs(reply.member_id, epoch, instance_id="i")
    assert given(told) == (share, ""), "the whole of what the seat had"
    assert {driver.classic_beat(each, epoch) for each in (one, two)} == {Error.NONE}
    assert driver.classic_beat(reply.member_id, epoch, "i") is Error.NONE
    tokens = [token_of(driver.group, reply.member_id, each) for each in resources(share)]
    assert all(token is not None for token in tokens)


def test_rule_22_the_seat_of_a_connect_member_that_is_away_is_taken_over_with_its_share(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1", instance_id="j")
    other = driver.joins().member_id
    runs = settles(driver)
    share = driver.group.share_of("W1")
    driver.heartbeat_reply(driver.request("W1", -2, instance_id="j", owned=()))
    assert driver.group.type is GroupType.CONNECT, "its seat is kept, and is of its kind"
    taken = driver.joins(instance_id="j", url="http://j/")
    assert (taken.error, driver.group.type) == (Error.NONE, GroupType.CLASSIC)
    assert taken.generation == driver.group.group_epoch
    assert driver.group.classic is not None
    told_of = {each.member_id: each.assignment for each in driver.group.classic.members}
    whole = decode_assignment(told_of[taken.member_id], VERSIONS[taken.protocol or ""])
    assert frozenset(whole.assigned) == share != frozenset()
    kept = driver.group.classic_members[other].current.assigned
    assert kept.keys() == resources(runs[other])


def test_rule_22_a_target_that_nobody_of_its_kind_is_left_to_compute_goes_with_the_group(
    driver: MixedDriver,
) -> None:
    computes = {"server_assignor": None, "assignors": (ClientAssignor("balanced"),)}
    driver.modern_joins("W1", instance_id="j", **computes)
    driver.joins()
    assert driver.group.state is GroupState.ASSIGNING, "it waits for the one that computes"
    taken = driver.joins(instance_id="j", url="http://j/")
    assert (taken.error, driver.group.type) == (Error.NONE, GroupType.CLASSIC)
    assert taken.generation == driver.group.group_epoch
    driver.reopen()


def test_rule_22_reversed_a_connect_process_takes_the_seat_of_a_classic_one(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1")
    one = driver.joins(instance_id="j", url="http://j/").member_id
    settles(driver)
    share = held(driver, one)
    epoch = driver.group.group_epoch
    reply = driver.modern_joins("W2", instance_id="j")
    assert (reply.error, reply.assignment) == (Error.NONE, resources(share))
    assert (driver.group.group_epoch, driver.group.translated) == (epoch, set())
    assert driver.classic_beat(one, epoch, "j") is Error.FENCED_INSTANCE_ID


def test_rule_8_a_time_that_began_before_both_conversions_ends_nobody_after_them(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    driver.joins(one, ALL_A)  # it owes a SyncGroup from now on
    driver.heartbeat_reply(driver.request("W1", -1))
    driver.call(driver.join_call(one, ALL_A))
    driver.joins(two, ALL_B)
    driver.modern_joins("W2")
    mixed_members = driver.shard.classic._mixed  # pyright: ignore[reportPrivateUsage]
    assert mixed_members.next_ms() is None, "nobody owes anything yet"
    assert {one, two} <= driver.group.translated


def test_rule_5_what_a_target_gave_and_nobody_was_granted_is_nobodys_after_both_conversions(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1")
    one = driver.joins().member_id
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.group.type is GroupType.CLASSIC
    before = len(driver.records)
    driver.modern_joins("W2")
    steps = (each for each in driver.records[before:] if isinstance(each, CurrentAssignment))
    first = next(each for each in steps if each.member_id == one)
    assert (first.assigned, first.pending) == ({}, {})


def test_rule_22_reversed_a_seat_that_is_taken_over_and_converts_the_group_raises_the_epoch(
    driver: MixedDriver,
) -> None:
    one = driver.joins(instance_id="j", url="http://j/").member_id
    driver.syncs(one, 1, assignments={one: told(["A", "A-0"])}, instance_id="j")
    driver.modern_joins("W1", instance_id="j")
    driver.reopen()  # nothing else than that rise tells how far the group has counted
    assert (driver.group.group_epoch, driver.group.bump and driver.group.bump.cause) == (
        2,
        Cause(Why.GROUP_UPGRADED, "http://W1"),
    )
    assert driver.group.members["W1"].current.assigned.keys() >= resources("A A-0")


@pytest.mark.parametrize("policy", ["bidirectional", "downgrade"])
def test_rule_23_and_24_when_the_last_one_leaves_the_rest_are_a_classic_group_in_a_round(
    driver: MixedDriver, policy: str
) -> None:
    one, two = mixed(driver)
    configure(driver, policy)
    epoch, begin = driver.group.group_epoch, len(driver.records)
    shares = {each: held(driver, each) for each in (one, two)}
    tokens = {each: token_of(driver.group, one, each) for each in resources(shares[one])}
    assert driver.heartbeat_reply(driver.request("W1", -1)).error is Error.NONE
    assert [type(each) for each in driver.records[begin:]] == [Tombstone] * 7 + [ClassicGroup]
    last = driver.group.classic
    assert last is not None
    assert (last.generation, last.cause) == (epoch, Cause(Why.GROUP_DOWNGRADED, "http://W1"))
    assert (last.protocol_type, last.protocol, last.is_synced) == ("connect", "sessioned", True)
    assert last.leader in {one, two}
    runs = {each.member_id: " ".join(map(str, sorted(each.assigned))) for each in last.members}
    assert runs == shares
    assert {each: token_of(driver.group, one, each) for each in tokens} == tokens
    assert {driver.classic_beat(each, epoch) for each in (one, two)} == {
        Error.REBALANCE_IN_PROGRESS
    }
    waiting = driver.call(driver.join_call(one, shares[one]))
    second = driver.joins(two, shares[two])
    first = driver.said[waiting]
    assert isinstance(first, JoinGroupReply)
    assert (first.generation, second.generation) == (epoch + 1, epoch + 1)
    (leads,) = (each for each in (first, second) if each.members)
    assert leads.leader == leads.member_id, "a real leader computes"
    assert driver.group.classic is not None
    assert driver.group.classic.cause == Cause(Why.MEMBER_LEFT, "http://W1")


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_rule_23_a_policy_without_downgrades_lets_the_classic_members_stay_as_they_are(
    driver: MixedDriver, policy: str
) -> None:
    one, two = mixed(driver)
    configure(driver, policy)
    epoch = driver.group.group_epoch
    driver.heartbeat_reply(driver.request("W1", -1))
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, epoch + 1)
    runs = settles(driver, **{each: held(driver, each) for each in (one, two)})
    assert " ".join(sorted(" ".join(runs.values()).split())) == f"{ALL_A} {ALL_B}"
    driver.reopen()


def test_rule_23_a_group_that_is_too_large_stays_as_it_is(driver: MixedDriver) -> None:
    mixed(driver)
    driver.send(ConfigureGroup("connect", {"group.max.size": "1"}))
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.group.type is GroupType.CONNECT


def test_rule_23_a_session_that_ends_converts_the_group_too(driver: MixedDriver) -> None:
    one, two = mixed(driver)
    for _ in range(3):
        for each in (one, two):
            driver.classic_beat(each, 3)
        driver.passes(4_000)
    assert driver.group.type is GroupType.CLASSIC
    assert driver.group.losses == {}, "a leader of their own knows of none"


def test_rule_23_what_was_kept_for_a_lost_member_is_kept_no_longer(driver: MixedDriver) -> None:
    _, two = mixed(driver)
    driver.send(ConfigureGroup("connect", {"scheduled.rebalance.max.delay.ms": "60000"}))
    for _ in range(3):
        driver.classic_beat(two, 3)
        driver.beats("W1")
        driver.passes(CLASSIC_SESSION_MS // 2)
    driver.beats("W1")
    assert driver.group.losses
    assert driver.group.schedule.parked
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.group.type is GroupType.CLASSIC
    assert (driver.group.losses, driver.group.schedule) == ({}, NO_SCHEDULE)
    driver.reopen()


def test_rule_24_after_a_restart_the_members_are_called_to_the_round_anew(
    driver: MixedDriver,
) -> None:
    one, two = mixed(driver)
    epoch = driver.group.group_epoch
    driver.heartbeat_reply(driver.request("W1", -1))
    driver.reopen()
    driver.passes(500)
    assert driver.classic_beat(one, epoch) is Error.REBALANCE_IN_PROGRESS
    waiting = driver.call(driver.join_call(one))
    assert driver.joins(two).generation == epoch + 1
    assert waiting in driver.said


def test_rule_25_a_seat_taken_while_the_group_reconciles_calls_for_a_round(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1", instance_id="i")
    assert driver.group.state is GroupState.RECONCILING
    reply = driver.joins("", instance_id="i", url="http://W1")
    assert driver.group.type is GroupType.CLASSIC
    assert driver.classic_beat(reply.member_id, reply.generation, "i") is (
        Error.REBALANCE_IN_PROGRESS
    )
    assert {each.member_id for each in last_of(driver).members} == {one, two, reply.member_id}


def last_of(driver: MixedDriver) -> ClassicGroup:
    assert driver.group.classic is not None
    return driver.group.classic


def test_rule_24_a_member_that_is_behind_the_target_is_called_to_the_round_like_the_others(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    assert driver.group.members[one].current.member_epoch == 2, "of three"
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.classic_beat(one, 2) is Error.REBALANCE_IN_PROGRESS
    assert driver.syncs(one, 2).error is Error.REBALANCE_IN_PROGRESS
    assert driver.classic_beat(one, 9) is Error.ILLEGAL_GENERATION


def test_rule_26_bytes_that_cannot_be_read_keep_the_group_as_it_is(driver: MixedDriver) -> None:
    one, _ = mixed(driver)
    metadata = driver.group.members[one].metadata
    assert metadata.classic is not None
    spoilt = tuple(replace(each, metadata=b"\0") for each in metadata.classic.protocols)
    driver.write(replace(metadata, classic=replace(metadata.classic, protocols=spoilt)))
    assert driver.heartbeat_reply(driver.request("W1", -1)).error is Error.NONE
    assert (driver.group.type, "W1" in driver.group.members) == (GroupType.CONNECT, False)


def test_rule_27_classic_members_that_leave_convert_nothing(driver: MixedDriver) -> None:
    one, two = mixed(driver)
    configure(driver, "disabled")
    driver.heartbeat_reply(driver.request("W1", -1))
    configure(driver, "bidirectional")
    driver.leaves(Leaver(one))
    assert (driver.group.type, driver.group.translated) == (GroupType.CONNECT, {two})
    driver.leaves(Leaver(two))
    assert (driver.group.type, driver.group.state) == (GroupType.CONNECT, GroupState.EMPTY)


def test_rule_27_one_leaves_and_others_of_both_kinds_stay(driver: MixedDriver) -> None:
    one, two = mixed(driver)
    epoch = driver.group.group_epoch
    driver.leaves(Leaver(one))
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, epoch + 1)
    assert driver.group.members.keys() == {two, "W1"}


def test_rule_28_an_empty_group_is_of_the_type_of_who_comes_whatever_the_policy(
    driver: MixedDriver,
) -> None:
    configure(driver, "disabled")
    first = driver.joins()
    driver.leaves(Leaver(first.member_id))
    assert driver.modern_joins("W1").member_epoch == driver.group.group_epoch == 3
    types = [driver.group.type]
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.joins().generation == 5
    assert [*types, driver.group.type] == [GroupType.CONNECT, GroupType.CLASSIC]
    assert driver.group.connectors.keys() == {"A", "B"}, "connectors and offsets are the group's"


def test_rule_30_a_task_commits_by_its_token_whichever_protocol_its_member_speaks(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    task = resource("A-0")
    token = token_of(driver.group, one, task)
    driver.modern_joins("W1")
    assert token_of(driver.group, one, task) == token
    settles(driver, **{one: ALL_A})
    assert token_of(driver.group, one, task) == token
    driver.heartbeat_reply(driver.request("W1", -1))
    assert driver.group.type is GroupType.CLASSIC
    assert token_of(driver.group, one, task) == token


def test_a_group_rolls_from_one_protocol_to_the_other_and_back_and_loses_nothing(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    everything = resources(f"{ALL_A} {ALL_B}")
    driver.modern_joins("W1")
    runs = settles(driver, **{one: ALL_A, two: ALL_B})
    driver.leaves(Leaver(one))
    driver.modern_joins("W2")
    settles(driver, **{two: runs[two]})
    driver.leaves(Leaver(two))
    for _ in range(4):
        driver.beats("W1")
        driver.beats("W2")
    assert driver.group.state is GroupState.STABLE
    assert driver.group.owner.keys() == everything
    three = driver.joins(url="http://c/").member_id
    driver.heartbeat_reply(driver.request("W1", -1))
    runs = settles(driver)
    four = driver.joins(url="http://d/").member_id
    runs = settles(driver, **runs)
    driver.heartbeat_reply(driver.request("W2", -1))
    assert driver.group.type is GroupType.CLASSIC
    epoch = driver.group.group_epoch
    waiting = driver.call(driver.join_call(three, runs[three]))
    driver.joins(four, runs[four])
    assert waiting in driver.said
    driver.answer(SyncGroup("connect", last_of(driver).leader, epoch + 1))
    assert driver.group.owner.keys() == resources(f"{runs[three]} {runs[four]}")
    driver.reopen()


def test_the_records_of_a_downgrade_come_in_this_order(driver: MixedDriver) -> None:
    one, two = mixed(driver)
    begin = len(driver.records)
    driver.heartbeat_reply(driver.request("W1", -1))
    *buried, generation = driver.records[begin:]
    assert buried == [
        *(
            Tombstone(kind, (member_id,))
            for member_id in ("W1", one, two)
            for kind in (CurrentAssignment, MemberMetadata)
        ),
        Tombstone(TargetAssignment, ()),
    ]
    assert isinstance(generation, ClassicGroup)
    assert not any(isinstance(each, GroupMetadata) for each in driver.records[begin:])


def test_rule_22_the_seat_of_the_only_member_is_taken_over_and_the_group_is_classic(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1", instance_id="j")
    reply = driver.joins(instance_id="j", url="http://j/")
    assert reply.error is Error.NONE
    assert (driver.group.type, driver.group.members) == (GroupType.CLASSIC, {})
    beat = driver.heartbeat_reply(driver.request("W1", 1))
    assert beat.error in {Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID}
