"""Static members that come back with another list of assignors (PROTOCOL §6, §8)."""

from dataclasses import replace

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.events.model import ClientAssignor
from fairlead_tests.decider import JOIN, Decider

NO_COMMON = "no assignor in common: the group runs new; list one of those as well"


def seat(decider: Decider, member_id: str, *names: str, instance: str) -> HeartbeatReply:
    """Let a process sit down in the seat of an instance."""
    listed = tuple(map(ClientAssignor, names))
    request = replace(JOIN, instance_id=instance, incarnation=member_id, assignors=listed)
    return decider.join(member_id, request)


def leave(decider: Decider, member_id: str, instance: str) -> None:
    """Let it leave for a while."""
    decider.heartbeat(Heartbeat("connect", member_id, -2, member_id, instance_id=instance))


def all_away() -> Decider:
    """A group of A and B, that can compute with `old`, both away."""
    decider = Decider(GroupSettings(max_delay_ms=300_000))
    decider.configure("C C-0 C-1 C-2")
    seat(decider, "A", "old", instance="a")
    seat(decider, "B", "old", instance="b")
    decider.settle()
    leave(decider, "A", "a")
    leave(decider, "B", "b")
    return decider


def test_who_is_away_keeps_nobody_out_and_the_newcomers_compute_with_what_they_have() -> None:
    decider = all_away()
    shares = {each: decider.group.share_of(each_id) for each, each_id in (("a", "A"), ("b", "B"))}
    assert seat(decider, "A2", "new", instance="a").error is Error.COMPUTE_ASSIGNMENT
    assert decider.soft.computation is not None
    assert decider.soft.computation.assignor == "new"
    decider.settle()
    assert seat(decider, "B2", "new", instance="b").error in {
        Error.NONE,
        Error.COMPUTE_ASSIGNMENT,
    }
    decider.settle()
    group = decider.group
    assert group.target.assignor == "new"
    assert {"a": group.share_of("A2"), "b": group.share_of("B2")} == shares


def test_who_returns_with_the_old_list_is_the_newcomer_then_and_is_told_what_to_list() -> None:
    decider = all_away()
    seat(decider, "A2", "new", instance="a")
    decider.settle()
    before = (decider.group.end, decider.soft)
    reply = seat(decider, "B2", "old", instance="b")
    assert (reply.error, reply.message) == (Error.UNSUPPORTED_ASSIGNOR, NO_COMMON)
    assert (decider.group.end, decider.soft) == before
    assert seat(decider, "B2", "new", "old", instance="b").error is not reply.error


def test_who_returns_under_its_own_id_is_weighed_as_well() -> None:
    decider = all_away()
    seat(decider, "A2", "new", instance="a")
    assert seat(decider, "B", "old", instance="b").error is Error.UNSUPPORTED_ASSIGNOR


def test_the_first_to_return_decides_and_the_old_list_is_as_good_as_it_was() -> None:
    decider = all_away()
    assert seat(decider, "A2", "old", instance="a").error in {
        Error.NONE,
        Error.COMPUTE_ASSIGNMENT,
    }
    reply = seat(decider, "B2", "new", instance="b")
    assert reply.error is Error.UNSUPPORTED_ASSIGNOR
    assert reply.message.startswith("no assignor in common: the group runs old;")


def test_a_newcomer_without_a_seat_fits_to_those_who_are_there() -> None:
    decider = all_away()
    seat(decider, "A2", "new", instance="a")
    listed = replace(JOIN, assignors=(ClientAssignor("old"),))
    reply = decider.join("N", listed)
    assert (reply.error, reply.message) == (Error.UNSUPPORTED_ASSIGNOR, NO_COMMON)
    fits = decider.join("N", replace(JOIN, assignors=(ClientAssignor("new"),)))
    assert fits.error in {Error.NONE, Error.COMPUTE_ASSIGNMENT}


def test_who_leaves_for_good_from_a_seat_that_fits_no_more_may_go() -> None:
    decider = all_away()
    seat(decider, "A2", "new", instance="a")
    gone = Heartbeat(
        "connect", "B", -1, "B", instance_id="b", assignors=(ClientAssignor("old"),), owned=()
    )
    assert decider.heartbeat(gone).error is Error.NONE
    assert set(decider.group.members) == {"A2"}


def test_a_seat_that_nobody_comes_back_to_is_lost_and_the_others_take_its_work() -> None:
    decider = all_away()
    seat(decider, "A2", "new", instance="a")
    decider.settle()
    decider.now_ms = 300_001
    decider.carry_out(ExpireSession("B"))
    decider.settle()
    assert (set(decider.group.members), decider.group.target.assignor) == ({"A2"}, "new")


def test_the_vote_is_of_all_as_long_as_one_assignor_is_fit_for_all() -> None:
    decider = Decider(GroupSettings(max_delay_ms=300_000))
    seat(decider, "A", "x", "y", instance="a")
    seat(decider, "B", "x", "y", instance="b")
    decider.join("C", replace(JOIN, assignors=(ClientAssignor("y"), ClientAssignor("x"))))
    leave(decider, "A", "a")
    leave(decider, "B", "b")
    decider.join("D", replace(JOIN, assignors=(ClientAssignor("x"), ClientAssignor("y"))))
    assert decider.soft.computation is not None
    assert decider.soft.computation.assignor == "x"
