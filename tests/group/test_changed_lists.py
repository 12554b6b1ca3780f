"""Static members that come back with another list of assignors (PROTOCOL §6, §8)."""

from dataclasses import replace

from coordinator import JOIN, Coordinator

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.messages.timers import ExpireSession
from fairlead.events.model import ClientAssignor

NO_COMMON = "no assignor in common: the group runs new; list one of those as well"


def seat(coordinator: Coordinator, member_id: str, *names: str, instance: str) -> HeartbeatReply:
    """Let a process sit down in the seat of an instance."""
    listed = tuple(map(ClientAssignor, names))
    request = replace(JOIN, instance_id=instance, incarnation=member_id, assignors=listed)
    return coordinator.join(member_id, request)


def leave(coordinator: Coordinator, member_id: str, instance: str) -> None:
    """Let it leave for a while."""
    coordinator.heartbeat(Heartbeat("connect", member_id, -2, member_id, instance_id=instance))


def all_away() -> Coordinator:
    """A group of A and B, that can compute with `old`, both away."""
    coordinator = Coordinator(GroupSettings(max_delay_ms=300_000))
    coordinator.configure("C C-0 C-1 C-2")
    seat(coordinator, "A", "old", instance="a")
    seat(coordinator, "B", "old", instance="b")
    coordinator.settle()
    leave(coordinator, "A", "a")
    leave(coordinator, "B", "b")
    return coordinator


def test_who_is_away_keeps_nobody_out_and_the_newcomers_compute_with_what_they_have() -> None:
    coordinator = all_away()
    shares = {
        each: coordinator.group.share_of(each_id) for each, each_id in (("a", "A"), ("b", "B"))
    }
    assert seat(coordinator, "A2", "new", instance="a").error is Error.COMPUTE_ASSIGNMENT
    assert coordinator.soft.computation is not None
    assert coordinator.soft.computation.assignor == "new"
    coordinator.settle()
    assert seat(coordinator, "B2", "new", instance="b").error in {
        Error.NONE,
        Error.COMPUTE_ASSIGNMENT,
    }
    coordinator.settle()
    group = coordinator.group
    assert group.target.assignor == "new"
    assert {"a": group.share_of("A2"), "b": group.share_of("B2")} == shares


def test_who_returns_with_the_old_list_is_the_newcomer_then_and_is_told_what_to_list() -> None:
    coordinator = all_away()
    seat(coordinator, "A2", "new", instance="a")
    coordinator.settle()
    before = (coordinator.group.end, coordinator.soft)
    reply = seat(coordinator, "B2", "old", instance="b")
    assert (reply.error, reply.message) == (Error.UNSUPPORTED_ASSIGNOR, NO_COMMON)
    assert (coordinator.group.end, coordinator.soft) == before
    assert seat(coordinator, "B2", "new", "old", instance="b").error is not reply.error


def test_who_returns_under_its_own_id_is_weighed_as_well() -> None:
    coordinator = all_away()
    seat(coordinator, "A2", "new", instance="a")
    assert seat(coordinator, "B", "old", instance="b").error is Error.UNSUPPORTED_ASSIGNOR


def test_the_first_to_return_decides_and_the_old_list_is_as_good_as_it_was() -> None:
    coordinator = all_away()
    assert seat(coordinator, "A2", "old", instance="a").error in {
        Error.NONE,
        Error.COMPUTE_ASSIGNMENT,
    }
    reply = seat(coordinator, "B2", "new", instance="b")
    assert reply.error is Error.UNSUPPORTED_ASSIGNOR
    assert reply.message.startswith("no assignor in common: the group runs old;")


def test_a_newcomer_without_a_seat_fits_to_those_who_are_there() -> None:
    coordinator = all_away()
    seat(coordinator, "A2", "new", instance="a")
    listed = replace(JOIN, assignors=(ClientAssignor("old"),))
    reply = coordinator.join("N", listed)
    assert (reply.error, reply.message) == (Error.UNSUPPORTED_ASSIGNOR, NO_COMMON)
    fits = coordinator.join("N", replace(JOIN, assignors=(ClientAssignor("new"),)))
    assert fits.error in {Error.NONE, Error.COMPUTE_ASSIGNMENT}


def test_who_leaves_for_good_from_a_seat_that_fits_no_more_may_go() -> None:
    coordinator = all_away()
    seat(coordinator, "A2", "new", instance="a")
    gone = Heartbeat(
        "connect", "B", -1, "B", instance_id="b", assignors=(ClientAssignor("old"),), owned=()
    )
    assert coordinator.heartbeat(gone).error is Error.NONE
    assert set(coordinator.group.members) == {"A2"}


def test_a_seat_that_nobody_comes_back_to_is_lost_and_the_others_take_its_work() -> None:
    coordinator = all_away()
    seat(coordinator, "A2", "new", instance="a")
    coordinator.settle()
    coordinator.now_ms = 300_001
    coordinator.carry_out(ExpireSession("B"))
    coordinator.settle()
    assert (set(coordinator.group.members), coordinator.group.target.assignor) == ({"A2"}, "new")


def test_the_vote_is_of_all_as_long_as_one_assignor_is_fit_for_all() -> None:
    coordinator = Coordinator(GroupSettings(max_delay_ms=300_000))
    seat(coordinator, "A", "x", "y", instance="a")
    seat(coordinator, "B", "x", "y", instance="b")
    coordinator.join("C", replace(JOIN, assignors=(ClientAssignor("y"), ClientAssignor("x"))))
    leave(coordinator, "A", "a")
    leave(coordinator, "B", "b")
    coordinator.join("D", replace(JOIN, assignors=(ClientAssignor("x"), ClientAssignor("y"))))
    assert coordinator.soft.computation is not None
    assert coordinator.soft.computation.assignor == "x"
