"""The steps of one member towards its target, rule by rule (PROTOCOL §4)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.members.reconcile import Goal, UnknownStateError, reconcile
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import Cause, MemberState, Resource, Why
from fairlead.events.record_parts import lay_out
from fairlead.events.records import CurrentAssignment, GroupMetadata, TargetAssignment
from fairlead_tests.decider import Decider, resources

STABLE = MemberState.STABLE
UNREVOKED, UNRELEASED, UNKNOWN = MemberState.UNREVOKED, MemberState.UNRELEASED, MemberState.UNKNOWN


def granted(text: str, epoch: int) -> dict[Resource, int]:
    return dict.fromkeys(resources(text), epoch)


def member(
    state: MemberState, assigned: str, pending: str = "", epoch: int = 5, previous: int = 4
) -> CurrentAssignment:
    """A member that has all it has since epoch 3."""
    return CurrentAssignment("m", epoch, previous, state, granted(assigned, 3), granted(pending, 3))


def goal(target: str, epoch: int = 6, others: str = "") -> Goal:
    """A target in whose way stands what another member holds."""
    return Goal(epoch, resources(target), dict.fromkeys(resources(others), "other"))


@pytest.mark.parametrize("owned", [None, "A"], ids=["unsaid", "some-of-it"])
def test_a_member_of_an_unknown_state_is_fenced_unless_it_says_that_it_owns_nothing(
    owned: str | None,
) -> None:
    said = None if owned is None else resources(owned)
    with pytest.raises(UnknownStateError, match="m"):
        reconcile(member(UNKNOWN, "A"), goal("A"), said)


def test_a_member_of_an_unknown_state_that_owns_nothing_goes_on_as_any() -> None:
    before = member(UNKNOWN, "A B")
    assert reconcile(before, goal("A C"), resources("")) == CurrentAssignment(
        "m", 6, 5, STABLE, granted("A", 3) | granted("C", 6), {}
    )


def test_a_member_of_an_unknown_state_is_answered_so_and_keeps_its_seat() -> None:
    decider = Decider()
    decider.configure("A")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.write(replace(decider.current("W1"), state=UNKNOWN))
    end = decider.group.end
    reply = decider.heartbeat(Heartbeat("connect", "W1", 1, "1"))
    assert (reply.error, reply.message, decider.group.end) == (
        Error.FENCED_MEMBER_EPOCH,
        "this version does not know the stored state of W1: its seat is kept; stop everything,"
        " and rejoin with epoch 0",
        end,
    )
    assert decider.join("W1").assignment == resources("A")
    assert decider.current("W1") == CurrentAssignment("W1", 1, 1, STABLE, granted("A", 1), {})


@pytest.mark.parametrize("owned", [None, "A B", "B"], ids=["unsaid", "all", "the-pending"])
def test_who_has_not_said_that_it_gave_up_stays_as_it_is_even_if_the_target_moved_on(
    owned: str | None,
) -> None:
    before = member(UNREVOKED, "A", "B")
    said = None if owned is None else resources(owned)
    for target in ("A", "A B", "C", ""):
        assert reconcile(before, goal(target, 9), said) is before


def test_who_is_stable_at_the_assignment_epoch_stays_as_it_is() -> None:
    before = member(STABLE, "A")
    for owned in (None, resources(""), resources("A B")):
        assert reconcile(before, goal("A", 5), owned) is before


@pytest.mark.parametrize("owned", [None, "A B"], ids=["unsaid", "said"])
def test_what_is_to_go_goes_first_and_nothing_new_is_granted_in_that_step(
    owned: str | None,
) -> None:
    said = None if owned is None else resources(owned)
    assert reconcile(member(STABLE, "A B"), goal("A C"), said) == CurrentAssignment(
        "m", 5, 5, UNREVOKED, granted("A", 3), granted("B", 3)
    )


def test_what_does_not_run_is_given_up_without_being_asked_for() -> None:
    assert reconcile(member(STABLE, "A B"), goal("A C"), resources("A")) == CurrentAssignment(
        "m", 6, 5, STABLE, granted("A", 3) | granted("C", 6), {}
    )


def test_a_second_revocation_in_a_row_keeps_the_epoch() -> None:
    before = member(UNREVOKED, "A B", "C")
    assert reconcile(before, goal("A", 9), resources("A B")) == CurrentAssignment(
        "m", 5, 5, UNREVOKED, granted("A", 3), granted("B", 3)
    )


def test_who_gave_up_gets_what_is_free_and_waits_for_the_rest() -> None:
    before = member(UNREVOKED, "A", "B")
    assert reconcile(before, goal("A C D", others="D"), resources("A")) == CurrentAssignment(
        "m", 6, 5, UNRELEASED, granted("A", 3) | granted("C", 6), {}
    )


def test_who_waits_gets_what_comes_free_and_is_stable_once_it_has_all() -> None:
    before = member(UNRELEASED, "A", epoch=6, previous=5)
    assert reconcile(before, goal("A C D", others="D"), None) == CurrentAssignment(
        "m", 6, 6, UNRELEASED, granted("A", 3) | granted("C", 6), {}
    )
    assert reconcile(before, goal("A C D"), None) == CurrentAssignment(
        "m", 6, 6, STABLE, granted("A", 3) | granted("C D", 6), {}
    )


def test_what_a_member_holds_itself_never_blocks_it() -> None:
    before = member(UNREVOKED, "A", "B")
    mine = Goal(6, resources("A B"), dict.fromkeys(resources("A B"), "m"))
    assert reconcile(before, mine, resources("A")) == CurrentAssignment(
        "m", 6, 5, STABLE, granted("A", 3) | granted("B", 6), {}
    )


def test_a_resource_that_stays_keeps_its_grant_epoch_and_one_that_comes_back_takes_a_new_one() -> (
    None
):
    given_up = reconcile(member(STABLE, "A B"), goal("A"), None)
    back = reconcile(given_up, goal("A B", 7), resources("A"))
    assert back.assigned == granted("A", 3) | granted("B", 7)


def test_the_previous_epoch_follows_even_if_nothing_else_changes_and_in_one_record() -> None:
    before = member(UNRELEASED, "A", epoch=6, previous=5)
    waiting = goal("A B", others="B")
    once = reconcile(before, waiting, None)
    assert once == replace(before, previous_epoch=6)
    assert reconcile(once, waiting, None) is once


def test_the_holder_map_loses_what_was_given_up_and_has_what_was_granted() -> None:
    decider = Decider()
    decider.configure("A B")
    for member_id in ("W1", "W2", "W3"):
        decider.join(member_id)
    decider.settle()
    decider.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources(""), "W2": resources(""), "W3": resources("A B")}),
    )
    steps = [dict(sorted(decider.group.owner.items()))]
    for member_id, owned in (("W1", None), ("W3", ""), ("W1", ""), ("W2", None), ("W2", "")):
        decider.beat(member_id, owned)
        steps.append(dict(sorted(decider.group.owner.items())))
    decider.beat("W3", "")
    a, b = sorted(resources("A B"))
    assert steps == [
        {a: "W1", b: "W2"},
        {a: "W1", b: "W2"},
        {a: "W1", b: "W2"},
        {b: "W2"},
        {b: "W2"},
        {},
    ]
    assert decider.group.owner == {a: "W3", b: "W3"}


def test_who_waits_stays_as_it_is_also_where_the_log_holds_what_it_has_in_parts() -> None:
    group = Group("connect")
    many = " ".join(f"c{number}" for number in range(100))
    ((whole, parts),) = lay_out(group.record_parts, [member(UNRELEASED, many, epoch=6, previous=6)])
    for part in (*parts[:-1], whole):
        evolve(group, part, group.end)
    before = group.members["m"].current
    assert before.parts > 1
    assert reconcile(before, goal(f"{many} D", others="D"), None) is before
