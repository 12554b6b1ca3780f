"""What a member says that it runs is held against what it was granted (PROTOCOL §3, §4)."""

import logging
from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.shards.host_actor import log_fence
from fairlead_tests.decider import JOIN, Decider, resources

LEAVE = {"for good": -1, "for a while": -2}


@pytest.fixture
def decider() -> Decider:
    """W1 and W2, both static, with A and B between them; all at rest."""
    decider = Decider()
    decider.configure("A B")
    for number in (1, 2):
        decider.join(f"W{number}", replace(JOIN, instance_id=f"i{number}"))
    decider.settle()
    return decider


def says(decider: Decider, epoch: int, text: str | None, incarnation: str = "1") -> str:
    """What W1 is answered that says that it runs these, by the name of the error."""
    owned = None if text is None else tuple(sorted(resources(text)))
    request = Heartbeat("connect", "W1", epoch, incarnation, instance_id="i1", owned=owned)
    return decider.heartbeat(request).error.name


def held(decider: Decider, member_id: str) -> str:
    """What a member holds."""
    return " ".join(map(str, sorted(decider.current(member_id).assigned)))


@pytest.mark.parametrize("epoch", LEAVE.values(), ids=LEAVE)
@pytest.mark.parametrize("what", ["what it holds", "what another holds", "what is nobody's"])
def test_a_leave_while_something_runs_frees_nothing(
    decider: Decider, epoch: int, what: str
) -> None:
    mine, other = held(decider, "W1"), held(decider, "W2")
    owned = {"what it holds": mine, "what another holds": other, "what is nobody's": "Z-7"}[what]
    before = (dict(decider.group.members), decider.group.end)
    assert says(decider, epoch, owned) == "INVALID_REQUEST"
    assert (decider.group.members, decider.group.end) == before
    decider.carry_out(ExpireSession("W1"))
    assert decider.group.losses["W1"].resources == resources(mine), "its session is waited for"


@pytest.mark.parametrize("epoch", LEAVE.values(), ids=LEAVE)
@pytest.mark.parametrize("text", [None, ""], ids=["says nothing", "says that nothing runs"])
def test_a_leave_that_names_nothing_frees_what_was_held(
    decider: Decider, epoch: int, text: str | None
) -> None:
    assert says(decider, epoch, text) == "NONE"
    assert "W1" not in decider.group.owner.values()


def test_who_claims_what_another_holds_is_fenced_and_told_whose_it_is(
    decider: Decider,
) -> None:
    epoch, other = decider.current("W1").member_epoch, held(decider, "W2")
    owned = tuple(sorted(resources("A B")))
    before = (dict(decider.group.members), decider.group.end)
    request = Heartbeat("connect", "W1", epoch, "1", instance_id="i1", owned=owned)
    reply = decider.heartbeat(request)
    assert (reply.error, reply.message) == (
        Error.FENCED_MEMBER_EPOCH,
        f"owned holds {other}, which is held by W2: its seat is kept; stop everything, and rejoin"
        " with epoch 0",
    )
    assert (decider.group.members, decider.group.end) == before


def test_who_claims_what_is_to_run_elsewhere_or_nowhere_is_fenced(decider: Decider) -> None:
    epoch, mine = decider.current("W1").member_epoch, held(decider, "W1")
    for beyond in ("Z", f"{mine}-7"):
        assert says(decider, epoch, f"{mine} {beyond}") == "FENCED_MEMBER_EPOCH"
    assert says(decider, epoch, mine) == "NONE"


def test_who_is_to_give_something_up_may_still_run_it() -> None:
    decider = Decider()
    decider.configure("A B")
    decider.join("W1", replace(JOIN, instance_id="i1"))
    decider.settle()
    decider.join("W2")
    decider.compute()
    epoch = decider.current("W1").member_epoch
    answers = [says(decider, epoch, "A B") for _ in range(2)]
    assert answers == ["NONE", "NONE"]
    assert decider.current("W1").pending


def test_a_fence_is_a_line_in_the_groups_log(caplog: pytest.LogCaptureFixture) -> None:
    fenced = HeartbeatReply(Error.FENCED_MEMBER_EPOCH, "W1", 3, message="owned holds A")
    with caplog.at_level(logging.WARNING):
        log_fence(fenced)
        log_fence(replace(fenced, error=Error.NONE))
    assert [each.getMessage() for each in caplog.records] == ["W1 is fenced: owned holds A"]
