"""What no log can hold is refused, whoever sends it, and the group goes on."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Expect, SetPlacement
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import ClientAssignor, Resource
from fairlead_tests.coordination.driver import CoordinatorDriver, told

HUGE = 10**5_000
HALF = "\ud800"
HOSTILE: dict[str, dict[str, object]] = {
    "a reason below any number": {"assignors": (ClientAssignor("balanced", reason=-(1 << 70)),)},
    "a version with too many digits": {"assignors": (ClientAssignor("balanced", version=HUGE),)},
    "a range with too many digits": {"assignors": (ClientAssignor("balanced", -HUGE, HUGE),)},
    "an endless rebalance timeout": {"rebalance_timeout_ms": HUGE},
    "an endless session": {"session_timeout_ms": HUGE},
    "a session of a day": {"session_timeout_ms": 86_400_000},
    "a url without end": {"url": "x" * 2_000},
    "metadata without end": {"assignors": (ClientAssignor("balanced", metadata=b"x" * 70_000),)},
    "a lone surrogate in a url": {"url": HALF},
    "a lone surrogate in a rack": {"rack": HALF},
    "a lone surrogate in metadata's place": {"client_host": HALF},
    "a task beyond int32": {"owned": (Resource("a", 1 << 40),)},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_a_heartbeat_that_no_log_can_hold_changes_nothing(
    driver: CoordinatorDriver, changes: dict[str, object]
) -> None:
    driver.asks(driver.joining("a"))
    end = driver.control.end
    hostile: Heartbeat = replace(driver.full("a"), **changes)  # type: ignore[arg-type]
    assert told(driver.asks(hostile)) == {"a": ("INVALID_REQUEST", None)}
    assert driver.control.end == end
    assert told(driver.asks(driver.joining("b")))["b"][0] == "NONE"


@pytest.mark.parametrize("epoch", [HUGE, -HUGE], ids=["above", "below"])
def test_an_epoch_with_too_many_digits_is_refused(driver: CoordinatorDriver, epoch: int) -> None:
    driver.asks(driver.joining("a"))
    assert told(driver.asks(driver.request("a", epoch))) == {"a": ("INVALID_REQUEST", None)}


def test_numbers_with_too_many_digits_in_orders_are_refused(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    driver.put("A")
    for order in (Expect("connect", "a", HUGE), SetPlacement("connect", Resource("A"), HUGE)):
        (answer,) = driver.send(order)
        assert isinstance(answer.reply, CommandReply)
        assert answer.reply.error is Error.INVALID_REQUEST


def asked_to_compute(driver: CoordinatorDriver) -> Install:
    """What `a` is to hand in, but for what it has computed."""
    driver.asks(driver.joining("a"))
    driver.put("A")
    (answer,) = driver.send(Prepare("connect", "a", 0))
    assert isinstance(answer.reply, PrepareReply)
    assert answer.reply.snapshot is not None
    return Install("connect", "a", 0, answer.reply.snapshot.group_epoch, None)


def replied(driver: CoordinatorDriver, install: Install) -> InstallReply:
    """What is said to what was handed in; the log has it."""
    reply = next(each.reply for each in driver.send(install) if each.to == "someone")
    assert isinstance(reply, InstallReply)
    driver.open()
    return reply


def unforeseen(_: Assignment, __: Snapshot) -> str:
    """Find nothing wrong."""
    return ""


def test_a_result_that_no_log_can_hold_is_a_failed_attempt_whose_error_is_kept(
    driver: CoordinatorDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.actors.group.computing.install.flaw_in", unforeseen)
    install = asked_to_compute(driver)
    made = Assignment({"a": frozenset()}, {}, {Resource("A"): HALF}, again_at_ms=1 << 70)
    reply = replied(driver, replace(install, assignment=made))
    target = driver.group.target
    assert target.error.startswith("TargetAssignment cannot be written down")
    kept = "the target stays as it was: correct the assignor before the next attempt"
    assert reply == InstallReply(Error.INVALID_ASSIGNMENT, f"{target.error}; {kept}")
    assert (target.assignment_epoch, target.members, target.failures) == (2, {}, 1)
    assert target.retry_at_ms > driver.now.wall_ms


def test_a_result_that_no_log_can_hold_ends_no_process_whose_disk_is_full(
    driver: CoordinatorDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.actors.group.computing.install.flaw_in", unforeseen)
    install = asked_to_compute(driver)
    made = Assignment({"a": frozenset()}, {}, {Resource("A"): HALF})
    driver.coordinator.set_disk_space(DiskSpace(Path("/disk"), 0), driver.now)
    end = driver.control.end
    reply = replied(driver, replace(install, assignment=made))
    assert reply.error is Error.INVALID_ASSIGNMENT
    assert driver.control.end == end


def test_a_process_may_count_its_requests_from_below_zero(driver: CoordinatorDriver) -> None:
    driver.sequences["a"] = -3
    assert told(driver.asks(driver.joining("a"))) == {"a": ("COMPUTE_ASSIGNMENT", "")}
