"""The rounds of a classic group: who waits for whom, who leads, and what a generation is."""

from dataclasses import replace

import pytest

from fairlead.actors.classic.rules import elect_protocol
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinGroupReply,
    LeaveGroupReply,
    SyncGroupReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.events.model import Cause, ClassicMember, ClassicProtocol, GroupState, GroupType, Why
from fairlead.events.records import ClassicGroup
from fairlead_tests.classic.driver import (
    AT_ONCE,
    REBALANCE_MS,
    SESSION_MS,
    ClassicDriver,
    offers,
)


@pytest.fixture
def driver() -> ClassicDriver:
    return ClassicDriver()


def newcomer(driver: ClassicDriver, /, **told: object) -> str:
    """Let a newcomer ask for its id; return that."""
    reply = driver.asks(driver.joining(**told))
    assert isinstance(reply, JoinGroupReply)
    assert reply.error is Error.MEMBER_ID_REQUIRED
    return reply.member_id


def joined(driver: ClassicDriver, number: int) -> JoinGroupReply:
    reply = driver.said[number]
    assert isinstance(reply, JoinGroupReply)
    return reply


def pair(driver: ClassicDriver) -> tuple[str, str]:
    """Have two members in a generation that is synced; the first leads."""
    first = newcomer(driver)
    driver.ask(driver.joining(first))
    second = newcomer(driver)
    driver.ask(driver.joining(second))
    driver.ask(driver.joining(first))
    driver.ask(driver.syncing(first, {first: b"one", second: b"two"}))
    driver.ask(driver.syncing(second))
    return first, second


def test_each_member_is_told_its_own_assignment_and_the_log_has_them(
    driver: ClassicDriver,
) -> None:
    first, second = pair(driver)
    for member_id, assignment in ((first, b"one"), (second, b"two")):
        reply = driver.asks(driver.syncing(member_id))
        assert reply == SyncGroupReply(
            Error.NONE, "game", "chess", assignment, number=reply.number if reply else 0
        )
    last = driver.group.classic
    assert last is not None
    assert {each.member_id: each.assignment for each in last.members} == {
        first: b"one",
        second: b"two",
    }
    assert (driver.group.type, driver.group.state) == (GroupType.CLASSIC, GroupState.STABLE)


def test_a_generation_says_why_it_had_to_be(driver: ClassicDriver) -> None:
    _, second = pair(driver)
    assert driver.group.classic is not None
    assert driver.group.classic.cause == Cause(Why.MEMBER_JOINED, second)
    driver.leaves(second)
    first = driver.group.classic.leader
    driver.ask(driver.joining(first))
    assert driver.group.classic.cause == Cause(Why.MEMBER_LEFT, second)


def test_a_join_phase_ends_without_those_who_are_late(driver: ClassicDriver) -> None:
    first, second = pair(driver)
    leaves = driver.ask(driver.joining(first))
    while driver.now_ms < REBALANCE_MS:
        driver.passes(SESSION_MS - 1_000)
        driver.beat(second)
    driver.passes(SESSION_MS)
    assert joined(driver, leaves).generation == 3
    assert [each.member_id for each in joined(driver, leaves).members] == [first]
    assert driver.beat(second) == "UNKNOWN_MEMBER_ID"


def test_a_generation_goes_on_without_those_who_do_not_ask_for_their_assignment(
    driver: ClassicDriver,
) -> None:
    first, second = pair(driver)
    driver.ask(driver.joining(first))
    driver.ask(driver.joining(second))
    driver.ask(driver.syncing(first))
    for _ in range(5):
        driver.passes(5_000)
        driver.beat(first)
        driver.beat(second)
    assert driver.beat(second) == "UNKNOWN_MEMBER_ID"
    assert driver.beat(first) == "REBALANCE_IN_PROGRESS"


def test_who_waits_for_an_answer_is_not_silent(driver: ClassicDriver) -> None:
    first, second = pair(driver)
    waiting = driver.ask(driver.joining(first))
    for _ in range(3):
        driver.passes(SESSION_MS - 1_000)
        driver.beat(second)
    driver.ask(driver.joining(second))
    assert joined(driver, waiting).error is Error.NONE


def test_a_newcomer_does_not_wait_for_ever_for_members_that_never_join(
    driver: ClassicDriver,
) -> None:
    members = first, second = pair(driver)
    driver.ask(replace(driver.joining(first), rebalance_timeout_ms=10_000_000))
    driver.ask(driver.joining(second))
    waiting = driver.ask(driver.joining("", asks_for_id=False))
    for _ in range(60):
        assert [driver.beat(each) for each in members] == ["REBALANCE_IN_PROGRESS"] * 2
        driver.passes(5_000)
    assert joined(driver, waiting).error is Error.UNKNOWN_MEMBER_ID


def test_the_leader_stays_while_it_joins_and_else_the_next_one_leads(
    driver: ClassicDriver,
) -> None:
    first, second = pair(driver)
    numbers = [driver.ask(driver.joining(first)), driver.ask(driver.joining(second))]
    assert {joined(driver, each).leader for each in numbers} == {first}
    driver.leaves(first)
    assert joined(driver, driver.ask(driver.joining(second))).leader == second


def test_a_static_leader_leads_on_under_its_new_id_also_after_others(
    driver: ClassicDriver,
) -> None:
    old = joined(driver, driver.ask(driver.joining("", "i1"))).member_id
    dynamic = newcomer(driver)
    waiting = driver.ask(driver.joining(dynamic))
    driver.ask(replace(driver.joining(old), instance_id="i1"))
    driver.ask(driver.syncing(old))
    new = joined(driver, driver.ask(driver.joining("", "i1"))).member_id
    waiting = driver.ask(driver.joining(dynamic, protocols=offers("chess", "go")))
    driver.ask(driver.joining(new, "i1"))
    assert joined(driver, waiting).leader == new != old


def test_the_first_round_waits_for_more_members_from_the_last_newcomer_on() -> None:
    driver = ClassicDriver(settings=replace(AT_ONCE, initial_delay_ms=3_000))
    numbers: list[int] = []
    for _ in range(4):
        numbers.append(driver.ask(driver.joining(newcomer(driver))))
        driver.passes(2_000)
        assert not set(numbers) & driver.said.keys()
    driver.passes(1_000)
    assert {joined(driver, each).generation for each in numbers} == {1}


def test_newcomers_put_a_first_round_off_by_a_rebalance_timeout_at_most() -> None:
    driver = ClassicDriver(settings=replace(AT_ONCE, initial_delay_ms=3_000))
    numbers = [driver.ask(driver.joining(newcomer(driver)))]
    for _ in range(REBALANCE_MS // 2_000):
        driver.passes(2_000)
        numbers.append(driver.ask(driver.joining(newcomer(driver))))
    assert joined(driver, numbers[0]).generation == 1


def test_only_the_first_round_of_an_empty_group_waits() -> None:
    driver = ClassicDriver(settings=replace(AT_ONCE, initial_delay_ms=3_000))
    first = newcomer(driver)
    driver.ask(driver.joining(first))
    driver.passes(3_000)
    driver.ask(driver.syncing(first))
    assert joined(driver, driver.ask(driver.joining(first))).generation == 2


def test_a_round_waits_for_an_id_that_was_given_out_until_its_session_is_over(
    driver: ClassicDriver,
) -> None:
    first, _ = pair(driver)
    newcomer(driver)
    _, second = first, next(each for each in driver.coordinator._state.seats if each != first)  # pyright: ignore[reportPrivateUsage]
    numbers = [driver.ask(driver.joining(first)), driver.ask(driver.joining(second))]
    assert not set(numbers) & driver.said.keys()
    driver.passes(SESSION_MS)
    assert {joined(driver, each).generation for each in numbers} == {3}


def test_a_member_that_asks_once_more_is_answered_in_its_last_place(driver: ClassicDriver) -> None:
    first, second = pair(driver)
    before = driver.ask(driver.joining(first))
    after = driver.ask(driver.joining(first))
    assert joined(driver, before).error is Error.REBALANCE_IN_PROGRESS
    driver.ask(driver.joining(second))
    assert joined(driver, after).error is Error.NONE


def test_a_leader_that_leaves_before_it_has_assigned_leaves_nobody_waiting(
    driver: ClassicDriver,
) -> None:
    first, second = pair(driver)
    driver.ask(driver.joining(first))
    driver.ask(driver.joining(second))
    waiting = driver.ask(driver.syncing(second))
    driver.leaves(first)
    reply = driver.said[waiting]
    assert isinstance(reply, SyncGroupReply)
    assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert joined(driver, driver.ask(driver.joining(second))).leader == second


def test_a_group_that_everybody_left_is_empty_and_counts_on(driver: ClassicDriver) -> None:
    for member_id in pair(driver):
        driver.leaves(member_id)
    last = driver.group.classic
    assert last is not None
    assert (last.generation, last.members, driver.group.state) == (3, (), GroupState.EMPTY)
    assert joined(driver, driver.ask(driver.joining(newcomer(driver)))).generation == 4


def test_an_operator_ends_a_static_seat_by_its_name_alone(driver: ClassicDriver) -> None:
    number = driver.ask(driver.joining("", "i1"))
    reply = driver.leaves("", "i1")
    assert isinstance(reply, LeaveGroupReply)
    assert [each.error for each in reply.leavers] == [Error.NONE]
    assert driver.beat(joined(driver, number).member_id) == "UNKNOWN_MEMBER_ID"


def test_an_id_that_was_given_out_is_given_back_whatever_instance_is_named(
    driver: ClassicDriver,
) -> None:
    member_id = newcomer(driver)
    reply = driver.leaves(member_id, "i1")
    assert isinstance(reply, LeaveGroupReply)
    assert [each.error for each in reply.leavers] == [Error.NONE]
    refused = driver.asks(driver.joining(member_id))
    assert isinstance(refused, JoinGroupReply)
    assert refused.error is Error.UNKNOWN_MEMBER_ID


def test_a_static_member_that_returns_keeps_its_place_through_a_restart(
    driver: ClassicDriver,
) -> None:
    old = joined(driver, driver.ask(driver.joining("", "i1")))
    driver.ask(driver.syncing(old.member_id, {old.member_id: b"all"}))
    new = joined(driver, driver.ask(driver.joining("", "i1")))
    driver.open()
    assert (new.generation, new.skips_assignment) == (old.generation, True)
    reply = driver.asks(driver.syncing(new.member_id))
    assert isinstance(reply, SyncGroupReply)
    assert reply.assignment == b"all"
    assert driver.beat(old.member_id) == "UNKNOWN_MEMBER_ID"


def test_a_static_leader_that_cannot_skip_its_duty_is_not_told_to_lead(
    driver: ClassicDriver,
) -> None:
    old = joined(driver, driver.ask(driver.joining("", "i1")))
    driver.ask(driver.syncing(old.member_id))
    new = joined(driver, driver.ask(driver.joining("", "i1", may_skip_assignment=False)))
    assert (new.leader, new.members, new.skips_assignment) == (old.member_id, (), False)


def test_a_static_member_that_is_away_is_waited_for_through_its_session(
    driver: ClassicDriver,
) -> None:
    static = joined(driver, driver.ask(driver.joining("", "i1")))
    driver.ask(driver.syncing(static.member_id))
    dynamic = newcomer(driver)
    waiting = driver.ask(driver.joining(dynamic))
    driver.passes(SESSION_MS - 1)
    assert waiting not in driver.said
    driver.passes(1)
    assert joined(driver, waiting).leader == dynamic


def test_a_restart_loses_a_round_and_no_generation(driver: ClassicDriver) -> None:
    first, second = pair(driver)
    lost = driver.ask(driver.joining(first))
    driver.open()
    assert driver.beat(first) == "NONE"
    assert joined(driver, driver.ask(driver.joining(second))).generation == 2
    driver.ask(driver.joining(first))
    third = joined(driver, driver.ask(driver.joining(second)))
    assert (lost in driver.said, third.generation) == (False, 3)


def test_a_generation_that_was_told_of_goes_on_after_a_restart(driver: ClassicDriver) -> None:
    first, second = pair(driver)
    driver.ask(driver.joining(first))
    driver.ask(driver.joining(second))
    driver.open()
    waiting = driver.ask(driver.syncing(second))
    driver.ask(driver.syncing(first, {second: b"new"}))
    reply = driver.said[waiting]
    assert isinstance(reply, SyncGroupReply)
    assert reply.assignment == b"new"


def test_without_room_nothing_is_decided_and_all_goes_on_later(driver: ClassicDriver) -> None:
    first = newcomer(driver)
    driver.has_room = False
    assert joined(driver, driver.ask(driver.joining(first))).error is (
        Error.COORDINATOR_NOT_AVAILABLE
    )
    driver.has_room = True
    assert joined(driver, driver.ask(driver.joining(first))).generation == 1


def test_each_votes_for_its_first_that_all_have_and_ties_go_by_name() -> None:
    def member(*names: str) -> ClassicMember:
        return ClassicMember(names[0], 1, 1, offers(*names))

    assert elect_protocol([member("b", "a"), member("a", "b")]) == "a"
    assert elect_protocol([member("c", "b", "a"), member("b", "a"), member("b", "a")]) == "b"
    assert elect_protocol([]) is None


BAD: dict[str, tuple[dict[str, object], Error]] = {
    "too many protocols": (
        {"protocols": offers(*map(str, range(17)))},
        Error.INVALID_REQUEST,
    ),
    "one protocol twice": ({"protocols": offers("a", "a")}, Error.INVALID_REQUEST),
    "much metadata": (
        {"protocols": offers("a", metadata=b"x" * 262_145)},
        Error.INVALID_REQUEST,
    ),
    "a long client id": ({"client_id": "c" * 257}, Error.INVALID_REQUEST),
    "half a character": ({"client_id": "\ud800"}, Error.INVALID_REQUEST),
    "no name of its own": ({"instance_id": ""}, Error.INVALID_REQUEST),
    "a negative timeout": ({"rebalance_timeout_ms": -2}, Error.INVALID_REQUEST),
    "a short session": ({"session_timeout_ms": 999}, Error.INVALID_SESSION_TIMEOUT),
    "unreadable subscription": (
        {"protocol_type": "consumer", "protocols": offers("range", metadata=b"\0\0\xff")},
        Error.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "unreadable worker": (
        {"protocol_type": "connect", "protocols": offers("compatible", metadata=b"\0\1\0")},
        Error.INCONSISTENT_GROUP_PROTOCOL,
    ),
}


@pytest.mark.parametrize(("told", "error"), BAD.values(), ids=BAD)
def test_what_a_group_could_not_bear_is_refused_and_changes_nothing(
    driver: ClassicDriver, told: dict[str, object], error: Error
) -> None:
    assert joined(driver, driver.ask(driver.joining(**told))).error is error
    assert (driver.entries, driver.coordinator.is_empty) == ([], True)


def test_a_member_with_unreadable_bytes_wedges_nobody(driver: ClassicDriver) -> None:
    good = offers("range", metadata=bytes.fromhex("000000000000ffffffff"))
    member_id = newcomer(driver, protocol_type="consumer", protocols=good)
    consumer = replace(driver.joining(member_id), protocol_type="consumer", protocols=good)
    assert joined(driver, driver.ask(consumer)).generation == 1
    bad = (ClassicProtocol("range", b"\0\0\x7f\xff\xff\xff"),)
    for each in (driver.joining(), driver.joining("", "i1"), consumer):
        refused = joined(driver, driver.ask(replace(each, protocol_type="consumer", protocols=bad)))
        assert refused.error is Error.INCONSISTENT_GROUP_PROTOCOL
    unreadable = driver.asks(driver.syncing(member_id, {member_id: b"\0"}))
    assert isinstance(unreadable, SyncGroupReply)
    assert unreadable.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert joined(driver, driver.ask(consumer)).error is Error.NONE


def test_a_group_has_a_size(driver: ClassicDriver) -> None:
    driver.settings = replace(driver.settings, max_size=1)
    driver.ask(driver.joining(newcomer(driver)))
    reply = joined(driver, driver.ask(driver.joining()))
    assert reply.error is Error.GROUP_MAX_SIZE_REACHED


def test_ids_that_nobody_joins_with_are_bounded(driver: ClassicDriver) -> None:
    ids = [newcomer(driver) for _ in range(1_001)]
    assert joined(driver, driver.ask(driver.joining(ids[0]))).error is Error.UNKNOWN_MEMBER_ID
    assert joined(driver, driver.ask(driver.joining(ids[-1]))).generation == 1


def test_calls_for_another_group_are_sent_away(driver: ClassicDriver) -> None:
    calls = (JoinGroup("other", "", "x", (), 1, 1), ClassicHeartbeat("other", "m", 1))
    for call in calls:
        reply = driver.asks(call)
        assert reply is not None
        assert reply.error is Error.NOT_COORDINATOR


def test_a_generation_by_a_stranger_is_no_legal_record() -> None:
    driver = ClassicDriver()
    cause, member = Cause(Why.UNKNOWN), ClassicMember("m", 1, 1, offers("a"))
    for record in (
        ClassicGroup(2, cause, 0),
        ClassicGroup(1, cause, 0, "x", "a", "other", (member,)),
    ):
        with pytest.raises(Exception, match="generation"):
            driver.write(record)
