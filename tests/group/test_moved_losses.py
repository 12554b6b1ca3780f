"""A loss that stands may be written anew, though its member is back: its deadline moves."""

from dataclasses import replace

from fairlead.actors.group.state.legality import flaw
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import NOTHING, Cause, Why
from fairlead.events.records import Loss, MemberMetadata

LOSS = Loss("W1", None, "u", NOTHING, 0, Cause(Why.SESSION_EXPIRED, "u"), 1_000)


def test_the_deadline_of_a_loss_moves_though_its_member_has_joined_again() -> None:
    group = Group("connect")
    evolve(group, LOSS, 0)
    evolve(group, MemberMetadata("W1"), 1)
    assert flaw(group, replace(LOSS, deadline_ms=2_000)) == ""


def test_who_is_a_member_can_not_be_lost() -> None:
    group = Group("connect")
    evolve(group, MemberMetadata("W1"), 0)
    assert flaw(group, LOSS) == "W1 is a member, and cannot be lost"
