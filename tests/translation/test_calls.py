"""Classic members of a connect group are answered from it: rules 9 to 19 (PROTOCOL §16)."""

import pytest

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.connect import decode_assignment
from fairlead.actors.messages.classic import Leaver
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import GroupType, MemberState
from fairlead.events.records import GroupMetadata
from fairlead_tests.classic.driver import offers
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.translation.driver import (
    CLASSIC_REBALANCE_MS,
    MixedDriver,
    given,
    held,
    refused,
)

ALL_A, ALL_B = "A A-0 A-1 A-2", "B B-0 B-1"


@pytest.fixture
def mixed(driver: MixedDriver) -> tuple[str, str]:
    """A mixed group: two classic workers that are called to give something to W1."""
    pair = driver.pair(ALL_A, ALL_B)
    assert driver.modern_joins("W1").member_epoch == 3
    return pair


def acknowledge(driver: MixedDriver, member_id: str, runs: str) -> str:
    """Have a worker do all that it is asked to; returns what it runs then."""
    for _ in range(3):
        reply = driver.joins(member_id, runs)
        came, went = given(driver.syncs(member_id, reply.generation))
        now = {*runs.split(), *came.split()} - {*went.split()}
        runs = " ".join(sorted(now))
        if not went:
            return runs
    raise AssertionError(f"{member_id} is asked to give up something for ever")


def test_rule_9_a_member_behind_the_target_is_called_until_it_joins(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    assert [driver.classic_beat(one) for _ in range(2)] == [Error.REBALANCE_IN_PROGRESS] * 2
    acknowledge(driver, one, ALL_A)
    assert driver.classic_beat(one) is Error.NONE


def test_rule_9_one_that_waits_is_called_once_all_is_free_that_it_waits_for(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, two = mixed
    third = driver.joins(url="http://e/").member_id
    assert driver.group.members[third].state is MemberState.UNRELEASED
    assert driver.classic_beat(third) is Error.NONE
    acknowledge(driver, one, ALL_A)
    acknowledge(driver, two, ALL_B)
    assert driver.classic_beat(third) is Error.REBALANCE_IN_PROGRESS
    assert acknowledge(driver, third, "") == " ".join(
        sorted(map(str, driver.group.share_of(third)))
    )
    assert driver.classic_beat(third) is Error.NONE


def test_rule_9_each_word_begins_the_session_anew_and_the_first_call_the_time_to_join(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    for _ in range(CLASSIC_REBALANCE_MS // 5_000 - 1):
        assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS
        driver.lives("W1", 5_000)
    assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS
    driver.lives("W1", 4_900)
    assert one in driver.group.members
    driver.lives("W1", 200)
    assert one not in driver.group.members, "its first call was twenty seconds ago"


@pytest.mark.usefixtures("mixed")
def test_rule_9_the_time_to_join_anew_runs_on_as_that_for_the_first_join_ends(
    driver: MixedDriver,
) -> None:
    three = driver.joins(asks_for_id=True).member_id
    assert driver.syncs(three, driver.joins(three).generation).error is Error.NONE
    driver.modern_joins("W2")
    driver.lives("W1", 4_000)
    assert driver.classic_beat(three) is Error.REBALANCE_IN_PROGRESS
    for _ in range(CLASSIC_REBALANCE_MS // 5_000 - 1):
        driver.lives("W1", 5_000)
        assert driver.classic_beat(three) is Error.REBALANCE_IN_PROGRESS
    driver.lives("W1", 4_900)
    assert three in driver.group.members
    driver.lives("W1", 200)
    assert three not in driver.group.members


def test_rule_10_a_join_is_answered_at_once_with_its_epoch_and_nobody_leads(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    reply = driver.joins(one, "A A-0 A-1")
    assert (reply.generation, reply.protocol_type, reply.protocol) == (3, "connect", "sessioned")
    assert (reply.leader, reply.members, reply.skips_assignment) == ("", (), False)


def test_rule_10_what_workers_say_of_themselves_calls_for_no_target(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    acknowledge(driver, one, ALL_A)
    epoch = driver.group.group_epoch
    runs = held(driver, one).split()
    driver.joins(one, **as_worker("http://elsewhere/", *runs, config_offset=99))
    assert driver.group.members[one].metadata.url == "http://elsewhere/"
    assert driver.group.group_epoch == epoch


def test_rule_11_an_eager_worker_owns_nothing_when_it_joins_and_is_told_all(
    driver: MixedDriver,
) -> None:
    one, _ = driver.pair(ALL_A, ALL_B, "eager")
    driver.modern_joins("W1")
    assert driver.joins(one, mode="eager").generation == 3, "it has stopped all it had"
    assert given(driver.syncs(one, 3)) == (" ".join(sorted(held(driver, one).split())), "")


def test_rule_11_a_worker_that_spoke_eagerly_owns_nothing_whatever_it_names(
    driver: MixedDriver,
) -> None:
    one = driver.joins(mode="sessioned").member_id
    driver.syncs(one, 1)
    waiting = driver.call(driver.join_call(mode="eager", url="http://d/"))
    assert driver.joins(one).protocol == "default"
    two = driver.newcomer(waiting)
    assignments = {one: told(ALL_A.split(), mode="eager"), two: told(ALL_B.split(), mode="eager")}
    driver.syncs(one, 2, assignments=assignments)
    driver.modern_joins("W1")
    joined = driver.joins(one, ALL_A)
    assert (joined.generation, joined.protocol) == (3, "sessioned"), "no second round is needed"
    assert given(driver.syncs(one, 3)) == (held(driver, one), ""), "it starts all of it anew"


def test_rule_12_what_is_to_be_given_up_takes_a_second_join(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    assert driver.joins(one, ALL_A).generation == 2, "its epoch stays"
    gone = " ".join(sorted({*ALL_A.split()} - {*held(driver, one).split()}))
    assert given(driver.syncs(one, 2)) == ("", gone)
    assert driver.classic_beat(one) is Error.REBALANCE_IN_PROGRESS
    assert driver.joins(one, ALL_A).generation == 2, "it still runs all of it"
    assert given(driver.syncs(one, 2)) == ("", gone), "so it is told again"
    assert driver.joins(one, held(driver, one)).generation == 3
    assert given(driver.syncs(one, 3)) == ("", "")


def test_rule_12_what_a_worker_runs_and_is_not_to_run_is_taken_from_it(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    runs = acknowledge(driver, one, ALL_A)
    reply = driver.joins(one, f"{runs} B")
    assert given(driver.syncs(one, reply.generation)) == ("", "B")


def test_rule_13_each_member_hears_the_first_protocol_of_its_own_list(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    versions: dict[str | None, int] = {}
    for member_id, mode in ((one, "sessioned"), ("", "compatible"), ("", "eager")):
        reply = driver.joins(member_id, mode=mode, url="http://e/")
        told = driver.syncs(reply.member_id, reply.generation)
        assert told.protocol == reply.protocol
        read = decode_assignment(told.assignment, VERSIONS[reply.protocol or ""])
        versions[reply.protocol] = read.version
    assert versions == {"sessioned": 2, "compatible": 1, "default": 0}


def test_rule_14_a_member_needs_the_type_and_a_protocol_that_all_classic_ones_have(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    offer = driver.join_call(url="http://e/").protocols
    alone = driver.joins(protocols=offer[:1], url="http://e/")
    assert alone.error is Error.NONE, "the others have that, too"
    error, message = refused(driver.joins(mode="eager", url="http://f/"))
    why = "it has no protocol in common with all other classic members"
    assert (error, message) == ("INCONSISTENT_GROUP_PROTOCOL", why)
    for other in ("consumer", "game", ""):
        error, message = refused(driver.joins(protocol_type=other, protocols=offers("chess")))
        assert error == "INCONSISTENT_GROUP_PROTOCOL"
        assert message.startswith("the group takes in classic members of the type 'connect'")
    assert driver.joins(one, ALL_A).error is Error.NONE


def test_rule_14_beside_members_of_the_connect_protocol_alone_any_of_their_type_is_taken_in(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W1")
    assert driver.joins(mode="eager").error is Error.NONE
    assert (driver.group.type, len(driver.group.members)) == (GroupType.CONNECT, 2)


def test_rule_15_connect_has_no_subscriptions_and_a_successor_keeps_nothing_else_either(
    driver: MixedDriver,
) -> None:
    driver.modern_joins("W0")
    driver.modern_joins("W1", instance_id="i", rack="z", node="n")
    metadata = driver.group.members[driver.joins(instance_id="i").member_id].metadata
    told = metadata.rack, metadata.node, metadata.assignors, metadata.server_assignor
    assert (metadata.instance_id, told) == ("i", (None, "", (), None))


def test_rule_16_and_18_who_does_not_ask_for_its_assignment_in_time_is_out(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    acknowledge(driver, one, ALL_A)
    driver.joins(one, held(driver, one))
    for _ in range(CLASSIC_REBALANCE_MS // 5_000):
        assert one in driver.group.members
        driver.classic_beat(one)
        driver.lives("W1", 5_000)
    assert one not in driver.group.members
    bump = [each for each in driver.records if isinstance(each, GroupMetadata)][-2:]
    assert "rebalance-expired http://c/" in {str(each.cause) for each in bump}


def test_rule_16_a_join_ends_the_time_to_join_and_begins_the_session(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    driver.classic_beat(one)
    for _ in range(6):
        acknowledge(driver, one, held(driver, one))
        driver.lives("W1", 5_000)
    assert one in driver.group.members


def test_rule_17_a_sync_is_refused_by_member_generation_and_protocol(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    acknowledge(driver, one, ALL_A)
    assert driver.syncs("nobody", 3).error is Error.UNKNOWN_MEMBER_ID
    assert driver.syncs("W1", 3).error is Error.UNKNOWN_MEMBER_ID
    assert driver.syncs(one, 2).error is Error.ILLEGAL_GENERATION
    for said in ({"protocol": "default"}, {"protocol_type": "consumer"}):
        error, message = refused(driver.syncs(one, 3, **said))
        told = "the member was told to speak connect sessioned"
        assert (error, message) == ("INCONSISTENT_GROUP_PROTOCOL", told)
    assert driver.syncs(one, 3, protocol_type="connect", protocol="sessioned").error is Error.NONE


def test_rule_17_a_sync_behind_the_target_is_a_call_and_writes_nothing(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, _ = mixed
    end = driver.group.end
    assert driver.syncs(one, 2).error is Error.REBALANCE_IN_PROGRESS
    assert driver.group.end == end


def test_rule_17_the_assignment_names_a_classic_worker_and_the_furthest_offset(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, two = mixed
    driver.joins(two, ALL_B, url="http://d/", **as_worker("http://d/", config_offset=9))
    reply = driver.joins(one, "A A-0 A-1")
    told = decode_assignment(driver.syncs(one, reply.generation).assignment, 2)
    assert (told.leader, told.leader_url, told.config_offset) == (one, "http://c/", 9)
    assert (told.error, told.delay_ms) == (0, 0)


@pytest.mark.usefixtures("mixed")
def test_rule_19_classic_calls_for_a_member_of_the_connect_protocol_are_nobodys(
    driver: MixedDriver,
) -> None:
    assert driver.classic_beat("W1", 3) is Error.UNKNOWN_MEMBER_ID
    assert driver.syncs("W1", 3).error is Error.UNKNOWN_MEMBER_ID
    assert driver.joins("W1").error is Error.UNKNOWN_MEMBER_ID
    assert driver.leaves(Leaver("W1")).leavers[0].error is Error.UNKNOWN_MEMBER_ID
    assert driver.group.members["W1"].metadata.classic is None


def test_rule_21_all_that_leave_in_one_call_raise_the_epoch_once(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    one, two = mixed
    epoch = driver.group.group_epoch
    reply = driver.leaves(Leaver(one), Leaver("nobody"), Leaver(two), Leaver(two))
    assert [each.error for each in reply.leavers] == [
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
    ]
    assert (driver.group.group_epoch, [*driver.group.members]) == (epoch + 1, ["W1"])
    assert driver.modern_goes_on("W1").member_epoch == epoch + 1
    assert held(driver, "W1") == f"{ALL_A} {ALL_B}"
    assert driver.leaves(Leaver(one)).leavers[0].error is Error.UNKNOWN_MEMBER_ID


def test_an_id_is_given_first_and_is_good_for_a_session(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    ids = [driver.joins(asks_for_id=True) for _ in range(2)]
    assert {each.error for each in ids} == {Error.MEMBER_ID_REQUIRED}
    assert driver.joins(ids[0].member_id).error is Error.NONE
    for each in mixed:
        driver.classic_beat(each)
    driver.lives("W1", 6_000)
    assert driver.joins(ids[1].member_id).error is Error.UNKNOWN_MEMBER_ID
    assert driver.joins("never-given").error is Error.UNKNOWN_MEMBER_ID


def test_who_asks_for_too_much_is_refused_as_in_a_classic_group(
    driver: MixedDriver, mixed: tuple[str, str]
) -> None:
    assert driver.joins(session_timeout_ms=1).error is Error.INVALID_SESSION_TIMEOUT
    driver.send(ConfigureGroup("connect", {"group.max.size": "3"}))
    assert driver.joins().error is Error.GROUP_MAX_SIZE_REACHED
    unreadable = driver.joins(protocols=offers("sessioned", metadata=b"\0"))
    assert unreadable.error is Error.GROUP_MAX_SIZE_REACHED
    spoilt = driver.joins(mixed[0], protocols=offers("sessioned", metadata=b"\0"))
    assert spoilt.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.joins(mixed[0], ALL_A).error is Error.NONE
