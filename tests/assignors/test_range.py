"""What the range assignor does: stretches of one list, in the order of the workers' names."""

from dataclasses import replace

from fairlead.actors.assignors.built_in.counting import assign_ranges as assign
from fairlead.actors.messages.computing import MemberView
from fairlead_tests.assignors.snapshots import loss, member, outcome, snapshot

WORK = "A A-0 A-1 A-2 B B-0 B-1 B-2"


def worker(member_id: str, name: str, target: str = "") -> MemberView:
    return replace(member(member_id, target, url=name), worker=name)


def test_each_member_gets_a_stretch_of_the_list_and_the_first_the_longer_ones() -> None:
    dealt = assign(snapshot(WORK, member("W1"), member("W2"), member("W3")))
    assert dealt == outcome({"W1": "A A-0 A-1", "W2": "A-2 B B-0", "W3": "B-1 B-2"})


def test_the_stretches_follow_the_workers_names_and_not_what_they_had() -> None:
    dealt = assign(snapshot(WORK, worker("W1", "z", "A A-0 A-1 A-2"), worker("W2", "a")))
    assert dealt == outcome({"W1": "B B-0 B-1 B-2", "W2": "A A-0 A-1 A-2"})


def test_more_members_than_work_leaves_the_last_without() -> None:
    dealt = assign(snapshot("A B", member("W1"), member("W2"), member("W3")))
    assert dealt == outcome({"W1": "A", "W2": "B", "W3": ""})


def test_a_lost_stretch_waits_and_the_others_stay_where_they_are() -> None:
    lost = (loss("W2", "A-2 B B-0", url="m"),)
    members = worker("W1", "a", "A A-0 A-1"), worker("W3", "z", "B-1 B-2")
    crashed = snapshot(WORK, *members, losses=lost)
    assert assign(crashed) == outcome({"W1": "A A-0 A-1", "W3": "B-1 B-2"}, parked="A-2 B B-0")


def test_who_returns_under_another_member_id_has_its_stretch_again() -> None:
    lost = (loss("W2", "A-2 B B-0", url="m"),)
    members = worker("W1", "a", "A A-0 A-1"), worker("W0", "m"), worker("W3", "z", "B-1 B-2")
    returned = snapshot(WORK, *members, losses=lost)
    assert assign(returned) == outcome({"W0": "A-2 B B-0", "W1": "A A-0 A-1", "W3": "B-1 B-2"})


def test_without_members_everything_is_unplaceable() -> None:
    assert set(assign(snapshot("A")).unplaceable.values()) == {"no members"}
