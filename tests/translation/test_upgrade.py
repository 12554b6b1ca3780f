"""A classic group becomes a connect group: rules 1 to 8 and 32 of translation (PROTOCOL §16)."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroupReply,
    Leaver,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.group import token_of
from fairlead.events.log.space import RESERVE_BYTES, DiskSpace
from fairlead.events.model import Cause, GroupType, MemberState, Token, Why
from fairlead.events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.classic.driver import offers
from fairlead_tests.classic.workers import told
from fairlead_tests.decider import resource, resources
from fairlead_tests.translation.driver import MixedDriver, given, held, refused

STAYS = "the group has members of the classic protocol, and stays so: "
ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


def configure(driver: MixedDriver, **configs: str) -> None:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    driver.send(ConfigureGroup("connect", named))


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_rule_1_a_policy_without_upgrades_refuses_the_join_and_says_so(
    driver: MixedDriver, policy: str
) -> None:
    driver.pair(ALL_A, ALL_B)
    configure(driver, group_migration_policy=policy)
    end = driver.group.end
    reply = driver.modern_joins("W1")
    why = f"group.migration.policy = {policy} does not let it become a connect group"
    assert refused(reply) == ("GROUP_ID_NOT_FOUND", STAYS + why)
    assert (driver.group.end, driver.group.type) == (end, GroupType.CLASSIC)


@pytest.mark.parametrize("policy", ["upgrade", "bidirectional"])
def test_rule_1_a_policy_with_upgrades_lets_the_join_convert_the_group(
    driver: MixedDriver, policy: str
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    configure(driver, group_migration_policy=policy)
    assert driver.modern_joins("W1").error is Error.NONE
    assert (driver.group.type, driver.group.translated) == (GroupType.CONNECT, {one, two})
    driver.reopen()


def test_rule_1_a_group_that_would_be_too_large_refuses_the_join(driver: MixedDriver) -> None:
    driver.pair(ALL_A, ALL_B)
    configure(driver, group_max_size="1")
    why = "it has more members than group.max.size = 1 allows"
    assert refused(driver.modern_joins("W1")) == ("GROUP_ID_NOT_FOUND", STAYS + why)
    configure(driver, group_max_size="2")
    assert driver.modern_joins("W1").error is Error.GROUP_MAX_SIZE_REACHED
    configure(driver, group_max_size="3")
    assert driver.modern_joins("W1").error is Error.NONE


def test_rule_1_and_31_a_group_of_another_protocol_type_is_not_converted(
    driver: MixedDriver,
) -> None:
    driver.joins(protocol_type="game", protocols=offers("chess"))
    why = "its members are of the type 'game', which is not converted"
    assert refused(driver.modern_joins("W1")) == ("GROUP_ID_NOT_FOUND", STAYS + why)


def test_rule_1_a_join_that_the_connect_type_refuses_converts_nothing(driver: MixedDriver) -> None:
    driver.pair(ALL_A, ALL_B)
    end = driver.group.end
    assert driver.modern_joins("W1", server_assignor="none").error is Error.UNSUPPORTED_ASSIGNOR
    assert (driver.group.end, driver.group.type) == (end, GroupType.CLASSIC)


def test_rule_2_bytes_that_cannot_be_read_refuse_the_join_and_name_the_member(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    last = driver.group.classic
    assert last is not None
    for field in ({"assignment": b"\0"}, {"protocols": offers("sessioned", metadata=b"\0")}):
        spoilt = (replace(last.members[0], assigned={}, **field), last.members[1])
        driver.write(replace(last, members=spoilt))  # no engine of ours takes such bytes
        driver.open()
        error, message = refused(driver.modern_joins("W1"))
        told_of = f"what {one} and its leader tell each other cannot be read"
        assert (error, message.startswith(STAYS + told_of)) == ("GROUP_ID_NOT_FOUND", True)
        assert driver.group.type is GroupType.CLASSIC


def test_rule_3_connect_has_no_user_data_and_what_follows_the_last_field_keeps_nobody_back(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    last = driver.group.classic
    assert last is not None
    longer = tuple(replace(each, assignment=each.assignment + b"?") for each in last.members)
    driver.write(replace(last, members=longer))
    driver.open()
    assert driver.modern_joins("W1").error is Error.NONE
    assert (held(driver, one), held(driver, two)) == (ALL_A, ALL_B)


def test_rule_4_members_that_wait_for_a_round_are_told_to_join_anew(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    newcomer = driver.call(driver.join_call())
    waiting = driver.call(driver.join_call(one, ALL_A))
    assert {newcomer, waiting}.isdisjoint(driver.said), "all wait for the other"
    assert driver.modern_joins("W1").member_epoch == 3
    for number in (newcomer, waiting):
        reply = driver.said[number]
        assert isinstance(reply, JoinGroupReply)
        assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert driver.group.translated == {one, two}
    assert (held(driver, one), held(driver, two)) == (ALL_A, ALL_B)
    assert driver.joins(driver.newcomer(newcomer)).error is Error.NONE, (
        "the id that it was told is good"
    )


def test_rule_4_members_that_wait_for_their_assignment_are_told_to_join_anew(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.call(driver.join_call(one, ALL_A))
    assert driver.joins(two, ALL_B).generation == 3
    waiting = driver.call(SyncGroup("connect", two, 3))
    assert waiting not in driver.said
    assert driver.modern_joins("W1").member_epoch == 4
    reply = driver.said[waiting]
    assert isinstance(reply, SyncGroupReply)
    assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert (held(driver, one), held(driver, two)) == (ALL_A, ALL_B), "as the last generation had it"
    assert driver.classic_beat(two) is Error.REBALANCE_IN_PROGRESS
    assert driver.syncs(two, 3).error is Error.REBALANCE_IN_PROGRESS


def test_rule_4_a_member_that_has_left_meanwhile_is_not_brought_back(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.leaves(Leaver(two))
    driver.modern_joins("W1")
    assert driver.group.translated == {one}
    assert held(driver, "W1") != "", "what the other had is free"


def test_rule_4_newcomers_alone_are_no_group_yet_and_join_anew(driver: MixedDriver) -> None:
    driver.settings = replace(driver.settings, initial_delay_ms=3_000)
    driver.open()
    newcomer = driver.call(driver.join_call())
    assert driver.modern_joins("W1").member_epoch == 1
    reply = driver.said[newcomer]
    assert isinstance(reply, JoinGroupReply)
    assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert driver.joins(reply.member_id).generation == 2


def test_rule_5_epochs_begin_at_the_generation_and_each_member_keeps_its_work_and_its_tokens(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.call(driver.join_call(one, ALL_A))
    assert driver.joins(two, ALL_B).generation == 3
    driver.syncs(one, 3, assignments={one: told(), two: told(given=["A-0"], taken=["B-1"])})
    before = {each: token_of(driver.group, one, each) for each in resources("A A-1")}
    driver.modern_joins("W1")
    kept = dict.fromkeys(resources(ALL_A), 2)
    assert driver.group.members[one].metadata.joined_epoch == 3
    first, second = (
        record
        for record in driver.records
        if isinstance(record, CurrentAssignment) and record.member_id in {one, two}
    )
    assert first == CurrentAssignment(one, 3, 3, MemberState.STABLE, kept, {})
    rest = {resource("B"): 2, resource("B-0"): 2}
    pending = {resource("B-1"): 2}, "the leader asked for it, and it is not told to be stopped"
    assert second == CurrentAssignment(two, 3, 3, MemberState.UNREVOKED, rest, pending[0])
    assert {each: token_of(driver.group, one, each) for each in before} == before
    assert before[resource("A-1")] == Token(2, 1)


def test_rule_5_a_member_that_has_not_heard_what_the_generation_speaks_runs_what_it_names(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.call(driver.join_call(mode="eager", url="http://e/"))
    driver.call(driver.join_call(one, ALL_A))
    assert driver.joins(two, ALL_B).protocol == "default"
    driver.modern_joins("W1")
    assert driver.joins(one, ALL_A).generation == 3, "it has something to give up first"
    current = driver.group.members[one].current
    assert {*current.assigned, *current.pending} == resources(ALL_A)


def test_rule_6_the_joiner_is_answered_the_next_epoch_with_what_is_free(
    driver: MixedDriver,
) -> None:
    driver.pair(ALL_A, "B B-0")
    reply = driver.modern_joins("W1")
    assert (reply.error, reply.member_epoch) == (Error.NONE, 3)
    assert reply.assignment == resources("B-1"), "nobody had it"
    (bump,) = (each for each in driver.records if isinstance(each, GroupMetadata))
    assert bump.cause == Cause(Why.GROUP_UPGRADED, "http://W1")


def test_rule_7_each_classic_member_keeps_its_own_session_from_the_conversion_on(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.passes(5_000)
    driver.classic_beat(one, 2)
    driver.classic_beat(two, 2)
    driver.modern_joins("W1")
    driver.passes(5_900)
    assert driver.group.translated == {one, two}
    assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS, "that is a word, too"
    driver.passes(200)
    assert driver.group.translated == {one}, "six seconds are its own, the group's are ten"
    driver.passes(3_000)
    assert "W1" in driver.group.members


def test_rule_7_after_a_restart_each_has_its_own_session_anew(driver: MixedDriver) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.modern_joins("W1")
    driver.passes(5_000)
    driver.reopen()
    driver.passes(5_900)
    assert driver.group.translated == {one, two}
    driver.passes(200)
    assert driver.group.translated == set()


def test_rule_8_timers_of_the_classic_group_find_nothing_to_end_after_a_conversion(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    driver.call(driver.join_call(one, ALL_A))  # a round begins, and would end in 20 s
    driver.modern_joins("W1")
    for _ in range(25):
        driver.passes(1_000)
        driver.modern_goes_on("W1")
        for member_id in (one, two):
            run = held(driver, member_id)
            epoch = driver.joins(member_id, run).generation
            driver.syncs(member_id, epoch)
    assert (driver.group.translated, driver.group.classic) == ({one, two}, None)


def test_rule_32_the_conversion_and_the_join_are_one_batch_in_this_order(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    begin = len(driver.records)
    driver.modern_joins("W1")
    written = [(type(each), getattr(each, "member_id", "")) for each in driver.records[begin:]]
    assert written == [
        (Tombstone, ""),
        (MemberMetadata, one),
        (MemberMetadata, two),
        (TargetAssignment, ""),
        (CurrentAssignment, one),
        (CurrentAssignment, two),
        (MemberMetadata, "W1"),
        (GroupMetadata, ""),
        (TargetAssignment, ""),
        (CurrentAssignment, "W1"),
    ]
    assert driver.records[begin] == Tombstone(ClassicGroup, ())


def test_rule_32_a_conversion_that_cannot_be_written_leaves_the_classic_group(
    driver: MixedDriver,
) -> None:
    one, two = driver.pair(ALL_A, ALL_B)
    waiting = driver.call(driver.join_call(one, ALL_A))
    full, enough = (DiskSpace(Path(), bytes_, RESERVE_BYTES) for bytes_ in (0, RESERVE_BYTES))
    end = driver.group.end
    driver.shard.set_disk_space(full, driver.now)
    assert driver.asks(driver.joining("W1")) == [], "unanswered, it asks again"
    assert (driver.group.end, driver.group.type) == (end, GroupType.CLASSIC)
    assert waiting not in driver.said
    driver.shard.set_disk_space(enough, driver.now)
    assert driver.joins(two, ALL_B).generation == 3, "the round goes on"
    assert waiting in driver.said


def test_rule_32_a_process_that_dies_before_the_append_leaves_the_classic_group(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B)
    driver.shard.submit(driver.joining("W1"), "W1", driver.now)
    types = [driver.group.type]
    driver.open()
    assert [*types, driver.group.type] == [GroupType.CONNECT, GroupType.CLASSIC], "as written"
    assert driver.answer(ClassicHeartbeat("connect", one, 2)).error is Error.NONE


def test_an_eager_group_is_converted_and_each_worker_begins_with_nothing(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B, "eager")
    driver.modern_joins("W1")
    assert held(driver, one) == ALL_A
    joined = driver.joins(one, mode="eager")
    assert (joined.generation, joined.protocol) == (3, "default")
    assert given(driver.syncs(one, 3)) == ("A A-0 A-1", ""), "all that it is to run"
