"""What operators order of workers and resources (PROTOCOL §2, record 22)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import CommandReply, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon, Rebalance, RemoveMember, Uncordon
from fairlead.events.model import Cause, Scope, Why
from fairlead.events.placement import worker_name
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Operator,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resources

NOW_MS = 1_000
W1, W2 = "http://w1", "http://w2"
CORDONED = Operator(Scope.WORKER, W2, cordoned=True, time_ms=NOW_MS, actor="ann")


@pytest.fixture
def decider() -> Decider:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider()
    decider.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        decider.join(member_id, replace(JOIN, client_id=f"client-{member_id}"))
        decider.settle()
    decider.now_ms = NOW_MS
    return decider


def nothing_done(decider: Decider) -> CommandReply:
    return CommandReply(Error.NONE, log_offset=decider.group.end)


def test_a_cordon_is_an_order_and_a_bump_with_cause_and_actor(decider: Decider) -> None:
    decision = decider.carry_out(Cordon("connect", W2, principal="ann"))
    assert decision.records == (
        CORDONED,
        GroupMetadata(3, Cause(Why.WORKER_CORDONED, W2), NOW_MS, "ann"),
    )
    assert decision.reply == nothing_done(decider)


def test_an_order_that_changes_nothing_writes_nothing(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2, principal="ann"))
    decider.now_ms += 1
    assert decider.carry_out(Cordon("connect", W2, principal="bob")).records == ()
    assert decider.carry_out(Uncordon("connect", W1)).records == ()
    assert decider.command(Uncordon("connect", W1)) == nothing_done(decider)


def test_a_drain_is_a_cordon_that_gives_up_what_is_there(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2))
    assert decider.carry_out(Cordon("connect", W2, drain=True, principal="ann")).records == (
        replace(CORDONED, draining=True),
        GroupMetadata(4, Cause(Why.WORKER_DRAINED, W2), NOW_MS, "ann"),
    )
    assert decider.carry_out(Cordon("connect", W2)).records == (), "it goes on draining"


def test_an_order_that_asks_for_nothing_any_more_becomes_a_tombstone(
    decider: Decider,
) -> None:
    decider.carry_out(Cordon("connect", W2, drain=True))
    assert decider.carry_out(Uncordon("connect", W2, principal="ann")).records == (
        Tombstone(Operator, ("worker", W2, -1)),
        GroupMetadata(4, Cause(Why.WORKER_UNCORDONED, W2), NOW_MS, "ann"),
    )
    assert decider.group.worker_orders == {}


def test_a_group_without_members_is_not_bumped_by_an_order(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2))
    for member_id in ("W1", "W2"):
        decider.carry_out(Heartbeat("connect", member_id, -1, "1"))
    assert decider.carry_out(Uncordon("connect", W2)).records == (
        Tombstone(Operator, ("worker", W2, -1)),
    )
    assert decider.carry_out(Rebalance("connect")).records == ()


@pytest.mark.parametrize("called", ["W2", W2, "client-W2", "w2"])
def test_a_worker_is_found_by_each_of_its_names(decider: Decider, called: str) -> None:
    decider.carry_out(Cordon("connect", called, principal="ann"))
    assert decider.group.worker_orders == {W2: CORDONED}


def test_a_worker_goes_by_its_instance_id_else_its_url_else_its_member_id() -> None:
    seat = MemberMetadata("W1")
    assert worker_name(seat) == "W1"
    assert worker_name(replace(seat, url=W1)) == W1
    assert worker_name(replace(seat, url=W1, instance_id="one")) == "one"


def test_a_lost_worker_and_one_that_is_only_ordered_are_found_as_well(
    decider: Decider,
) -> None:
    decider.carry_out(ExpireSession("W2"))
    assert decider.command(Cordon("connect", W2)).error is Error.NONE
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert decider.group.losses == {}
    assert decider.command(Uncordon("connect", W2)).error is Error.NONE


def test_an_unknown_worker_is_refused_with_who_is_there(decider: Decider) -> None:
    end = decider.group.end
    for command in (Cordon("connect", "w9"), Uncordon("connect", "w9")):
        assert decider.command(command) == CommandReply(
            Error.UNKNOWN_MEMBER_ID, f"there is no worker 'w9': there are {W1}, {W2}"
        )
    assert decider.group.end == end


def test_a_long_name_is_not_repeated_in_full(decider: Decider) -> None:
    assert decider.command(Cordon("connect", "x" * 10_000)) == CommandReply(
        Error.UNKNOWN_MEMBER_ID, f"there is no worker '{'x' * 200}': there are {W1}, {W2}"
    )


def test_a_name_that_several_have_is_refused_with_whose_it_is(decider: Decider) -> None:
    decider.join("W3", replace(JOIN, url="http://w3", client_id="client-W2"))
    assert decider.command(Cordon("connect", "client-W2")) == CommandReply(
        Error.UNKNOWN_MEMBER_ID,
        f"'client-W2' could be any of {W2}, http://w3: name one of these",
    )


def test_a_name_that_is_a_workers_own_beats_one_that_it_shares(decider: Decider) -> None:
    decider.join("W3", replace(JOIN, url="http://w3", client_id=W2))
    decider.carry_out(Cordon("connect", W2, principal="ann"))
    assert decider.group.worker_orders == {W2: CORDONED}


def test_a_worker_whose_name_no_key_can_hold_is_refused(decider: Decider) -> None:
    decider.join("W3", replace(JOIN, url="x" * 201))
    reply = decider.command(Cordon("connect", "W3"))
    assert (reply.error, "so no order can name it" in reply.message) == (
        Error.INVALID_REQUEST,
        True,
    )


def test_a_restarted_worker_stays_cordoned(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2, principal="ann"))
    decider.carry_out(ExpireSession("W2"))
    decider.join("again", replace(JOIN, url=W2))
    assert decider.group.worker_orders == {W2: CORDONED}
    decider.restart()
    assert decider.group.worker_orders == {W2: CORDONED}


# Rebalance, and the end of a seat.


def test_an_operator_may_ask_for_a_rebalance(decider: Decider) -> None:
    assert decider.carry_out(Rebalance("connect", principal="ann")).records == (
        GroupMetadata(3, Cause(Why.REBALANCE_REQUESTED, "connect"), NOW_MS, "ann"),
    )


GONE = (Tombstone(CurrentAssignment, ("W2",)), Tombstone(MemberMetadata, ("W2",)))


def test_by_force_a_member_that_holds_nothing_is_removed_at_once(
    decider: Decider,
) -> None:
    decider.join("W3")
    removal = RemoveMember("connect", "w3", force=True, principal="ann")
    records = decider.carry_out(removal).records
    assert records == (
        Tombstone(CurrentAssignment, ("W3",)),
        Tombstone(MemberMetadata, ("W3",)),
        GroupMetadata(4, Cause(Why.MEMBER_REMOVED, "http://w3"), NOW_MS, "ann"),
    )


def test_a_drained_member_can_be_removed(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2, drain=True))
    decider.settle()
    assert decider.current("W2").assigned == {}
    for _ in range(2):  # asked for, and done once it did not leave by itself
        assert decider.command(RemoveMember("connect", "W2")).error is Error.NONE
    assert set(decider.group.members) == {"W1"}


def test_a_member_removed_by_force_goes_with_its_session_and_parks_nothing(
    decider: Decider,
) -> None:
    removal = RemoveMember("connect", "W2", force=True, principal="ann")
    ordered = Operator(Scope.WORKER, W2, time_ms=NOW_MS, actor="ann", removing="W2")
    assert decider.carry_out(removal).records == (ordered,)
    assert decider.carry_out(removal).records == (), "once is enough"
    decider.restart()
    assert decider.carry_out(ExpireSession("W2")).records == (
        *GONE,
        Tombstone(Operator, ("worker", W2, -1)),
        GroupMetadata(3, Cause(Why.MEMBER_REMOVED, W2), NOW_MS, "ann"),
    )
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")


def test_the_end_of_a_seat_leaves_the_workers_cordon(decider: Decider) -> None:
    decider.carry_out(Cordon("connect", W2, principal="ann"))
    decider.carry_out(RemoveMember("connect", "W2", force=True, principal="ann"))
    decider.carry_out(ExpireSession("W2"))
    assert decider.group.worker_orders == {W2: CORDONED}


def test_a_member_that_left_for_a_while_is_removed_by_force_at_once(
    decider: Decider,
) -> None:
    decider.configure("A A-0 B B-0 C C-0")
    decider.join("S", replace(JOIN, url="http://s", instance_id="s"))
    decider.settle()
    assert decider.current("S").assigned
    decider.carry_out(Heartbeat("connect", "S", -2, "1", instance_id="s"))
    decider.carry_out(RemoveMember("connect", "s", force=True))
    assert set(decider.group.members) == {"W1", "W2"}


def test_there_is_no_member_to_remove_by_an_unknown_name(decider: Decider) -> None:
    assert decider.command(RemoveMember("connect", "w9")) == CommandReply(
        Error.UNKNOWN_MEMBER_ID, "there is no worker 'w9': there are http://w1, http://w2"
    )
