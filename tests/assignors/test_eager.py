"""What the eager assignor does, and where its cursor goes."""

from dataclasses import replace

from hypothesis import given

from fairlead.actors.assignors.built_in.counting import assign_eagerly as assign
from fairlead.actors.assignors.classic.loads import deal_eagerly
from fairlead.actors.assignors.eligibility import eligible
from fairlead.actors.messages.computing import MemberView, Snapshot
from fairlead_tests.assignors.drawn import snapshots
from fairlead_tests.assignors.snapshots import loss, member, outcome, snapshot, work


def named(member_id: str, worker: str, target: str = "") -> MemberView:
    return replace(member(member_id, target), worker=worker)


def test_one_cursor_goes_round_for_connectors_and_then_for_tasks() -> None:
    dealt = assign(snapshot("A A-0 A-1 B C C-0", member("W1"), member("W2")))
    assert dealt == outcome({"W1": "A C A-1", "W2": "B A-0 C-0"})


def test_who_had_what_does_not_count() -> None:
    everything = "A A-0 A-1 B B-0"
    joined = assign(snapshot(everything, member("W1", everything), member("W2")))
    assert joined == outcome({"W1": "A A-0 B-0", "W2": "B A-1"})


def test_the_cursor_goes_by_the_workers_names_whatever_their_member_ids() -> None:
    before = assign(snapshot("A B A-0", named("x", "one"), named("y", "two")))
    bounced = assign(snapshot("A B A-0", named("z", "one"), named("y", "two")))
    assert before == outcome({"x": "A A-0", "y": "B"})
    assert bounced == outcome({"z": "A A-0", "y": "B"})


def test_lost_work_goes_to_others_at_once() -> None:
    crashed = snapshot("A B", member("W1", "A"), losses=(loss("W2", "B"),))
    assert assign(crashed) == outcome({"W1": "A B"})


def test_orders_stand_and_the_cursor_goes_round_with_the_rest() -> None:
    cordoned = replace(member("W1", "A"), cordoned=True)
    group = snapshot("A B C A-0", cordoned, member("W2"), member("W3"))
    pinned = replace(group, pins=dict.fromkeys(work("A-0"), ("W3",)))
    assert assign(pinned) == outcome({"W1": "A", "W2": "B", "W3": "C A-0"})


@given(snapshots())
def test_among_those_that_take_work_it_is_dealt_as_the_classic_one_deals(group: Snapshot) -> None:
    members = {each: replace(view, worker=each) for each, view in group.members.items()}
    takers = [each.member_id for each in eligible(members).takers]
    dealt = deal_eagerly(group.configured, takers)
    assert {
        member_id: share
        for member_id, share in assign(replace(group, members=members)).members.items()
        if member_id in takers
    } == {member_id: frozenset(load) for member_id, load in dealt.items()}
