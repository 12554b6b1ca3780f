"""A seat whose member is away holds a place, not work (PROTOCOL §8)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.decide import decide
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession, FinishDeletion, FreeSeat
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import (
    Cordon,
    DeleteConnector,
    Expect,
    PutConnector,
    Rebalance,
    ReleaseSeats,
    RemoveMember,
    Uncordon,
)
from fairlead.events.group import Member
from fairlead.events.model import Cause, GroupState, MemberState, RunState, Scope, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Operator,
    Tombstone,
)
from fairlead.projections.views import ResourceStatus, awaited_resources, resource_status
from fairlead.runtime.interfaces.replies.building.node import describe_member
from fairlead_tests.decider import JOIN, Decider, resource, resources
from fairlead_tests.group.static_seat import AWAY, DELAY_MS, STATIC, WORK, returning, static_group

ALL = resources("A A-0 B B-0")
NODE = "a1b2"


@pytest.fixture
def decider() -> Decider:
    """W1 with connector A, and S1 of instance i, which had connector B and is away."""
    decider = static_group()
    decider.heartbeat(AWAY)
    return decider


def held(decider: Decider) -> dict[str, set[str]]:
    """What each member holds once the group is at rest."""
    decider.settle()
    return {
        member_id: set(map(str, member.current.assigned))
        for member_id, member in decider.group.members.items()
    }


def seats(count: int, node: str = NODE, tasks: int = 3) -> Decider:
    """A group of so many static workers of one node, all of them away."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure(" ".join(["A", *(f"A-{task}" for task in range(tasks))]))
    names = [f"w{number}" for number in range(1, count + 1)]
    for name in names:
        request = replace(STATIC, instance_id=f"i-{name}", url=f"here/{name}", node=node)
        decider.join(name, request)
        decider.settle()
    for name in names:
        decider.heartbeat(Heartbeat("connect", name, -2, "1", instance_id=f"i-{name}"))
    return decider


class Looked(dict[str, Member]):
    """Members, with a count of how often one was looked at."""

    count = 0

    def __getitem__(self, member_id: str) -> Member:
        self.count += 1
        return super().__getitem__(member_id)


# What it had.


def test_what_a_seat_had_stays_its_own_while_the_target_says_so(decider: Decider) -> None:
    decider.carry_out(PutConnector("connect", "C", {}))
    assert held(decider) == {"W1": {"A", "A-0", "C"}, "S1": set()}
    assert decider.group.share_of("S1") == WORK
    epoch = decider.group.group_epoch
    decider.heartbeat(returning("S2"))
    assert held(decider)["S2"] == {"B", "B-0"}
    assert decider.group.group_epoch == epoch, "its return moves nothing"


def test_a_drain_takes_the_work_of_a_seat_at_once(decider: Decider) -> None:
    decider.command(Cordon("connect", "i", drain=True))
    assert held(decider) == {"W1": set(map(str, ALL)), "S1": set()}


def test_who_returns_to_a_seat_that_lost_its_share_is_given_work_again(
    decider: Decider,
) -> None:
    decider.command(Cordon("connect", "i", drain=True))
    decider.settle()
    decider.command(Uncordon("connect", "i"))
    decider.settle()
    decider.heartbeat(returning("S2"))
    assert decider.group.bump == GroupMetadata(5, Cause(Why.MEMBER_JOINED, "http://s"), 0)
    assert sorted(map(len, held(decider).values())) == [2, 2]


def test_who_returns_to_a_seat_that_never_had_work_bumps_nothing() -> None:
    decider = Decider()
    decider.configure("A")
    for member_id in ("W1", "W2"):
        decider.join(member_id, replace(STATIC, instance_id=member_id, url=member_id))
        decider.settle()
    (idle,) = [each for each in ("W1", "W2") if not decider.group.share_of(each)]
    decider.heartbeat(Heartbeat("connect", idle, -2, "1", instance_id=idle))
    epoch = decider.group.group_epoch
    decider.join("W3", replace(STATIC, instance_id=idle, url=idle, incarnation="2"))
    assert decider.group.group_epoch == epoch


def test_a_rebalance_that_is_asked_for_gives_the_work_of_a_seat_to_who_is_there(
    decider: Decider,
) -> None:
    assert decider.carry_out(Rebalance("connect", "ann")).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, Cause(Why.REBALANCE_REQUESTED, "connect"), 0, "ann"),
    )
    assert held(decider) == {"W1": set(map(str, ALL))}
    decider.heartbeat(returning("S2"))
    assert sorted(map(len, held(decider).values())) == [2, 2]


def test_a_rebalance_ends_no_seat_of_a_worker_that_is_expected_back(
    decider: Decider,
) -> None:
    decider.command(Expect("connect", "i", 60_000))
    decider.command(Rebalance("connect"))
    assert held(decider) == {"W1": {"A", "A-0"}, "S1": set()}


def test_a_rebalance_ends_no_seat_where_nobody_is_there() -> None:
    decider = seats(2)
    decider.command(Rebalance("connect"))
    assert decider.group.members.keys() == {"w1", "w2"}


def test_a_seat_that_is_waited_for_no_longer_ends_at_once(decider: Decider) -> None:
    assert decider.carry_out(Expect("connect", "i", 0, "ann")).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, Cause(Why.WORKER_EXPECTED, "i"), 0, "ann"),
    )
    assert held(decider) == {"W1": set(map(str, ALL))}


def test_a_seat_is_removed_without_force_for_it_runs_nothing(decider: Decider) -> None:
    assert decider.command(RemoveMember("connect", "i")).error is Error.NONE
    assert held(decider) == {"W1": set(map(str, ALL))}


def test_a_deleted_connector_is_gone_at_once_if_only_a_seat_had_it(
    decider: Decider,
) -> None:
    decider.carry_out(DeleteConnector("connect", "B"))
    decider.settle()
    decider.carry_out(FinishDeletion("B"))
    assert "B" not in decider.group.connectors
    again = decider.command(PutConnector("connect", "B", {}, create_only=True))
    assert (again.error, again.created) == (Error.NONE, True)
    assert held(decider)["W1"] == {"A", "A-0", "B"}


# Who comes instead.


def test_a_join_under_the_url_of_a_seat_ends_it(decider: Decider) -> None:
    decider.join("W2", replace(JOIN, url="http://s"))
    assert decider.group.members.keys() == {"W1", "W2"}
    assert decider.group.bump == GroupMetadata(3, Cause(Why.MEMBER_JOINED, "http://s"), 0)
    assert sorted(map(len, held(decider).values())) == [2, 2]


def test_a_return_under_the_url_of_another_seat_gives_what_that_one_had_to_who_is_there() -> None:
    decider = seats(2)
    back = replace(STATIC, instance_id="i-w1", url="here/w2", incarnation="2")
    decider.join("w1", back)
    assert decider.group.members.keys() == {"w1"}
    assert held(decider) == {"w1": {"A", "A-0", "A-1", "A-2"}}


def test_a_join_under_the_url_of_a_member_that_is_there_ends_nothing() -> None:
    decider = static_group()
    decider.join("W2", replace(JOIN, url="http://s"))
    assert decider.group.members.keys() == {"W1", "S1", "W2"}


def test_a_join_that_is_refused_ends_no_seat(decider: Decider) -> None:
    flawed = replace(JOIN, member_id="W2", url="http://s", rebalance_timeout_ms=0)
    assert decider.heartbeat(flawed).error is Error.INVALID_REQUEST
    assert decider.group.members.keys() == {"W1", "S1"}


def test_a_join_that_ends_a_seat_is_let_into_a_full_group(decider: Decider) -> None:
    decider.soft = replace(decider.soft, settings=GroupSettings(max_size=2))
    assert decider.join("W3").error is Error.GROUP_MAX_SIZE_REACHED
    assert decider.join("W2", replace(JOIN, url="http://s")).error is Error.NONE


def test_static_workers_that_come_up_without_instance_ids_run_everything_at_once() -> None:
    decider = seats(3)
    for name in ("w1", "w2", "w3"):
        decider.join(f"new-{name}", replace(JOIN, url=f"here/{name}"))
        decider.settle()
    assert decider.group.members.keys() == {"new-w1", "new-w2", "new-w3"}
    assert sorted(map(len, held(decider).values())) == [1, 1, 2]
    assert decider.group.state is GroupState.STABLE


# A node that comes up.


def test_a_node_that_names_fewer_static_workers_gives_up_the_seats_of_the_others() -> None:
    decider = seats(3)
    assert decider.carry_out(ReleaseSeats("connect", NODE, frozenset({"i-w1"}))).records[:5] == (
        Tombstone(CurrentAssignment, ("w2",)),
        Tombstone(MemberMetadata, ("w2",)),
        Tombstone(CurrentAssignment, ("w3",)),
        Tombstone(MemberMetadata, ("w3",)),
        GroupMetadata(4, Cause(Why.MEMBER_LEFT, "here/w2 and 1 more"), 0),
    )
    again = replace(STATIC, instance_id="i-w1", url="here/w1", node=NODE, incarnation="2")
    decider.join("new", again)
    assert held(decider) == {"new": {"A", "A-0", "A-1", "A-2"}}


def test_who_returns_after_others_were_given_more_than_their_share_is_given_its_own() -> None:
    decider = seats(4, tasks=8)
    decider.command(ReleaseSeats("connect", NODE, frozenset({"i-w1", "i-w2"})))
    for name in ("w1", "w2"):
        again = replace(STATIC, instance_id=f"i-{name}", url=f"here/{name}", node=NODE)
        decider.join(name, replace(again, incarnation="2"))
        decider.settle()
    assert sorted(map(len, held(decider).values())) == [4, 5]


def test_a_node_that_names_no_static_workers_gives_up_all_its_seats() -> None:
    decider = seats(2)
    decider.command(ReleaseSeats("connect", NODE, frozenset()))
    assert decider.group.state is GroupState.EMPTY


@pytest.mark.parametrize("node", ["c3d4", ""])
def test_a_node_gives_up_no_seat_of_another(node: str) -> None:
    decider = seats(2, node="")
    assert decider.carry_out(ReleaseSeats("connect", node, frozenset())).records == ()
    assert decider.group.members.keys() == {"w1", "w2"}


def test_a_node_gives_up_no_seat_in_which_somebody_sits() -> None:
    decider = seats(1)
    again = replace(STATIC, instance_id="i-w1", url="here/w1", node=NODE, incarnation="2")
    decider.join("new", again)
    assert decider.carry_out(ReleaseSeats("connect", NODE, frozenset())).records == ()


# What is told of it, and of old logs.


def test_a_return_costs_no_more_where_more_seats_are_kept() -> None:
    counts: list[int] = []
    for kept in (5, 30):
        decider = seats(kept)
        looked = decider.group.members = Looked(decider.group.members)
        back = replace(STATIC, instance_id="i-w1", url="here/w1", incarnation="2")
        decide(decider.group, decider.soft, replace(back, member_id="w1"), 0)
        counts.append(looked.count)
    assert counts[1] == counts[0]


def test_the_wait_for_a_seat_is_told(decider: Decider) -> None:
    group = decider.group
    why = "http://s left for a while, and its place is kept for its return"
    assert resource_status(group, resource("B-0")) == ResourceStatus(RunState.UNASSIGNED, "", why)
    assert describe_member(group, group.members["S1"]).state == "AWAY"
    assert awaited_resources(group) == WORK


def test_a_seat_to_which_an_earlier_version_left_its_work_lets_go_of_it() -> None:
    decider = static_group()
    grants = decider.current("S1").assigned
    decider.write(CurrentAssignment("S1", -2, 2, MemberState.STABLE, grants, {}))
    assert decider.group.owner.keys() >= WORK, "the log means what it meant"
    assert describe_member(decider.group, decider.member("S1")).state == "AWAY"
    away = CurrentAssignment("S1", -2, 2, MemberState.AWAY, {}, {})
    assert decider.carry_out(FreeSeat("S1")).records == (away,)
    assert decider.carry_out(FreeSeat("S1")).records == ()
    assert decider.group.owner.keys().isdisjoint(WORK)


def test_an_expectation_of_a_seat_is_an_order_like_any_other(decider: Decider) -> None:
    order = Operator(Scope.WORKER, "i", expected_back_ms=60_000, actor="ann")
    assert decider.carry_out(Expect("connect", "i", 60_000, "ann")).records == (order,)


def test_a_node_gives_up_the_seats_that_an_earlier_version_left_at_its_place() -> None:
    decider = seats(3, node="")
    decider.command(ReleaseSeats("connect", NODE, frozenset({"i-w1"}), "here"))
    assert decider.group.members.keys() == {"w1"}
    decider = seats(3, node="")
    decider.command(ReleaseSeats("connect", NODE, frozenset({"i-w1"}), "her"))
    assert decider.group.members.keys() == {"w1", "w2", "w3"}


def test_a_seat_that_is_expected_back_for_longer_leaves_its_work_waiting_that_long(
    decider: Decider,
) -> None:
    within_ms = 2 * DELAY_MS
    decider.command(Expect("connect", "i", within_ms))
    decider.now_ms = DELAY_MS
    decider.carry_out(ExpireSession("S1"))
    assert held(decider) == {"W1": {"A", "A-0"}}
    assert decider.group.schedule.parked == dict.fromkeys(WORK, within_ms)
    decider.heartbeat(returning("S2"))
    assert held(decider)["S2"] == {"B", "B-0"}


def test_a_connector_that_was_kept_for_seats_alone_is_deleted_and_made_anew_at_once() -> None:
    decider = seats(2)
    decider.carry_out(DeleteConnector("connect", "A"))
    decider.carry_out(FinishDeletion("A"))
    assert "A" not in decider.group.connectors
    again = decider.command(PutConnector("connect", "A", {}, create_only=True))
    assert (again.error, again.created) == (Error.NONE, True)


def test_seats_that_are_drained_and_let_again_while_all_are_away_take_work_when_they_return() -> (
    None
):
    decider = seats(2)
    for instance in ("i-w1", "i-w2"):
        decider.command(Cordon("connect", instance, drain=True))
    for instance in ("i-w1", "i-w2"):
        decider.command(Uncordon("connect", instance))
    for name in ("w1", "w2"):
        back = replace(STATIC, instance_id=f"i-{name}", url=f"here/{name}", incarnation="2")
        decider.join(f"new-{name}", back)
        decider.settle()
    assert sorted(map(len, held(decider).values())) == [1, 3]


def test_the_seats_of_a_node_whose_workers_have_other_instance_ids_now_end() -> None:
    decider = seats(2)
    decider.restart()
    for name in ("w1", "w2"):
        other = replace(STATIC, instance_id=f"south-{name}", url=f"here/{name}", node=NODE)
        decider.join(f"new-{name}", other)
    assert sorted(map(len, held(decider).values())) == [1, 3]
    assert decider.group.state is GroupState.STABLE
