"""The outlook of a member: what waits, and why it has nothing."""

import pytest

from fairlead.actors.group.members.outlook import outlook_of
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.groups import Outlook
from fairlead.actors.messages.orders import Cordon, PutConnector
from fairlead.events.records import ScheduledRebalance
from fairlead_tests.decider import Decider, resource, resources


@pytest.fixture
def decider() -> Decider:
    """W1 runs A."""
    decider = Decider()
    decider.configure("A")
    decider.join("W1")
    decider.settle()
    return decider


def reason_of(decider: Decider, member_id: str) -> str:
    outlook = outlook_of(decider.group, member_id)
    assert outlook is not None
    return outlook.reason


def test_a_member_is_told_what_is_parked_and_when_moves_are_due(decider: Decider) -> None:
    decider.write(ScheduledRebalance({resource("B"): 90}, again_at_ms=70))
    assert outlook_of(decider.group, "W1") == Outlook({resource("B"): 90}, 70)
    assert outlook_of(decider.group, "W9") is None


def test_a_member_that_has_nothing_is_told_why(decider: Decider) -> None:
    decider.join("W2")
    assert reason_of(decider, "W2") == "the target for epoch 2 is being computed"
    decider.settle()
    assert reason_of(decider, "W1") == "", "it has something"
    assert reason_of(decider, "W2") == "1 resources are with other members"
    decider.carry_out(PutConnector("connect", "C", {"placement.tags": "gpu"}))
    decider.settle()
    decider.write(ScheduledRebalance({resource("B"): 90}))
    nobody = "1 no worker can take: needs tag gpu: no worker that takes work meets this"
    others = f"1 resources are with other members; 1 wait for a worker that was lost; {nobody}"
    assert reason_of(decider, "W2") == others
    decider.carry_out(Cordon("connect", "http://w2"))
    decider.settle()
    assert reason_of(decider, "W2") == "it is cordoned: operators want it to get no more work"
    decider.carry_out(Cordon("connect", "http://w2", drain=True))
    assert reason_of(decider, "W2") == "it is drained: operators want it to have no work"


def test_a_member_that_waits_is_told_for_what(decider: Decider) -> None:
    decider.join("W2")
    snapshot = decider.prepare("W1")
    decider.install("W1", snapshot, Assignment({"W2": resources("A")}))
    reason = "1 resources are to come, which others still hold"
    assert outlook_of(decider.group, "W2") == Outlook(awaited=resources("A"), reason=reason)
    decider.beat("W1", "A")
    gives_up = outlook_of(decider.group, "W1")
    assert gives_up is not None
    assert gives_up.pending == resources("A")
