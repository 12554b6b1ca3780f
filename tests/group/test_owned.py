"""What a member says that it runs is held against what it was granted (PROTOCOL §3, §4)."""

import logging
from dataclasses import replace

import pytest
from coordinator import JOIN, Coordinator, resources

from fairlead.actors.group.actor import log_fence
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.messages.timers import ExpireSession

LEAVE = {"for good": -1, "for a while": -2}


@pytest.fixture
def coordinator() -> Coordinator:
    """W1 and W2, both static, with A and B between them; all at rest."""
    coordinator = Coordinator()
    coordinator.configure("A B")
    for number in (1, 2):
        coordinator.join(f"W{number}", replace(JOIN, instance_id=f"i{number}"))
    coordinator.settle()
    return coordinator


def says(coordinator: Coordinator, epoch: int, text: str | None, incarnation: str = "1") -> str:
    """What W1 is answered that says that it runs these, by the name of the error."""
    owned = None if text is None else tuple(sorted(resources(text)))
    request = Heartbeat("connect", "W1", epoch, incarnation, instance_id="i1", owned=owned)
    return coordinator.heartbeat(request).error.name


def held(coordinator: Coordinator, member_id: str) -> str:
    """What a member holds."""
    return " ".join(map(str, sorted(coordinator.current(member_id).assigned)))


@pytest.mark.parametrize("epoch", LEAVE.values(), ids=LEAVE)
@pytest.mark.parametrize("what", ["what it holds", "what another holds", "what is nobody's"])
def test_a_leave_while_something_runs_frees_nothing(
    coordinator: Coordinator, epoch: int, what: str
) -> None:
    mine, other = held(coordinator, "W1"), held(coordinator, "W2")
    owned = {"what it holds": mine, "what another holds": other, "what is nobody's": "Z-7"}[what]
    before = (dict(coordinator.group.members), coordinator.group.end)
    assert says(coordinator, epoch, owned) == "INVALID_REQUEST"
    assert (coordinator.group.members, coordinator.group.end) == before
    coordinator.carry_out(ExpireSession("W1"))
    assert coordinator.group.losses["W1"].resources == resources(mine), "its session is waited for"


@pytest.mark.parametrize("epoch", LEAVE.values(), ids=LEAVE)
@pytest.mark.parametrize("text", [None, ""], ids=["says nothing", "says that nothing runs"])
def test_a_leave_that_names_nothing_frees_what_was_held(
    coordinator: Coordinator, epoch: int, text: str | None
) -> None:
    assert says(coordinator, epoch, text) == "NONE"
    assert "W1" not in coordinator.group.owner.values()


def test_who_claims_what_another_holds_is_fenced_and_told_whose_it_is(
    coordinator: Coordinator,
) -> None:
    epoch, other = coordinator.current("W1").member_epoch, held(coordinator, "W2")
    owned = tuple(sorted(resources("A B")))
    before = (dict(coordinator.group.members), coordinator.group.end)
    request = Heartbeat("connect", "W1", epoch, "1", instance_id="i1", owned=owned)
    reply = coordinator.heartbeat(request)
    assert (reply.error, reply.message) == (
        Error.FENCED_MEMBER_EPOCH,
        f"owned holds {other}, which is held by W2: its seat is kept; stop everything, and rejoin"
        " with epoch 0",
    )
    assert (coordinator.group.members, coordinator.group.end) == before


def test_who_claims_what_is_to_run_elsewhere_or_nowhere_is_fenced(coordinator: Coordinator) -> None:
    epoch, mine = coordinator.current("W1").member_epoch, held(coordinator, "W1")
    for beyond in ("Z", f"{mine}-7"):
        assert says(coordinator, epoch, f"{mine} {beyond}") == "FENCED_MEMBER_EPOCH"
    assert says(coordinator, epoch, mine) == "NONE"


def test_who_is_to_give_something_up_may_still_run_it() -> None:
    coordinator = Coordinator()
    coordinator.configure("A B")
    coordinator.join("W1", replace(JOIN, instance_id="i1"))
    coordinator.settle()
    coordinator.join("W2")
    coordinator.compute()
    epoch = coordinator.current("W1").member_epoch
    answers = [says(coordinator, epoch, "A B") for _ in range(2)]
    assert answers == ["NONE", "NONE"]
    assert coordinator.current("W1").pending


def test_a_fence_is_a_line_in_the_groups_log(caplog: pytest.LogCaptureFixture) -> None:
    fenced = HeartbeatReply(Error.FENCED_MEMBER_EPOCH, "W1", 3, message="owned holds A")
    with caplog.at_level(logging.WARNING):
        log_fence(fenced)
        log_fence(replace(fenced, error=Error.NONE))
    assert [each.getMessage() for each in caplog.records] == ["W1 is fenced: owned holds A"]
