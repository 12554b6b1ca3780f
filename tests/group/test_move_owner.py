"""The order to give a group up: carried out once, by the owner that it is for (LOG.md §13)."""

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import MoveOwner
from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead_tests.decider import Decider

RESIGNS = OwnerResigned(7, "n1", "n2", 0)


@pytest.fixture
def decider() -> Decider:
    """A group that n1 owns with owner epoch 7."""
    decider = Decider()
    decider.write(OwnerBegan(7, "n1"))
    return decider


def order(epoch: int = 7, to: str = "n2") -> MoveOwner:
    return MoveOwner("connect", to, "ann", epoch)


@pytest.mark.parametrize("epoch", [7, 0])
def test_the_owner_that_it_is_for_resigns_and_once(decider: Decider, epoch: int) -> None:
    decider.now_ms = 0
    assert decider.carry_out(order(epoch)).records == (RESIGNS,)
    again = decider.carry_out(order(epoch))
    assert (again.records, again.reply) == ((), CommandReply(Error.NONE, log_offset=2))


@pytest.mark.parametrize("to", ["", "n1", "n2", "n3"])
def test_a_later_owner_keeps_the_group_when_it_is_repeated(decider: Decider, to: str) -> None:
    decider.carry_out(order(to="n2"))
    decider.write(OwnerBegan(8, "n2"))
    again = decider.carry_out(order(to=to))
    assert (again.records, again.reply) == ((), CommandReply(Error.NONE, log_offset=3))


def test_the_node_that_is_named_keeps_it(decider: Decider) -> None:
    assert decider.carry_out(order(to="n1")).records == ()


def test_on_one_host_it_is_refused() -> None:
    refused = Decider().carry_out(order(0)).reply
    assert isinstance(refused, CommandReply)
    assert refused.error is Error.INVALID_REQUEST
