"""Who is asked to compute, and asked again, as its members hear it."""

from dataclasses import replace

import pytest
from coordination.office import HEARTBEAT_MS, Office, told

from fairlead.actors.group import compute
from fairlead.actors.messages import Error, Heartbeat
from fairlead.events.model import Assignor


def asked_in_turn(office: Office, attempts: int) -> list[str]:
    """Let all members beat and none compute, until so many attempts failed; who was asked."""
    found: list[str] = []
    members = sorted(office.group.members)
    while office.group.target.failures < attempts:
        said = office.passes(2_000)
        said += office.asks(*(office.joining(each) for each in members))
        for who, (error, _) in told(said).items():
            if error == Error.COMPUTE_ASSIGNMENT.value and who not in found[-1:]:
                found.append(who)
    return found


def test_all_that_took_too_long_are_asked_again_in_turn_after_a_failed_attempt(
    office: Office,
) -> None:
    for member in "abc":
        office.asks(office.joining(member))
    assert asked_in_turn(office, 1) == ["a", "b", "c"]
    assert asked_in_turn(office, 2) == ["a", "b", "c"]
    assert asked_in_turn(office, 3) == ["a", "b", "c"]


def with_range(office: Office, member: str, low: int, high: int, version: int) -> Heartbeat:
    """The join of a member whose assignor reads these versions and writes that one."""
    assignors = (Assignor("cooperative", low, high, version),)
    return replace(office.joining(member), assignors=assignors)


def test_a_plain_heartbeat_elects_nobody_where_nobody_is_able(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.put("A")
    office.asks(with_range(office, "a", 0, 9, 5))
    office.compute("a")
    office.asks(with_range(office, "b", 0, 3, 1))
    office.asks(with_range(office, "c", 4, 6, 6))
    office.compute("a")
    for member, joins_again in (("b", (0, 3, 1)), ("c", (4, 6, 6))):
        office.asks(with_range(office, member, *joins_again))
    office.asks(office.request("a", -1))
    assert office.group.group_epoch > office.group.assignment_epoch, "a target is due"
    elections: list[tuple[object, ...]] = []

    def elect(*asked: object) -> None:
        elections.append(asked)

    monkeypatch.setattr(compute, "elect", elect)
    for _ in range(3):
        office.asks(office.request("b"), office.request("c"))
        office.passes(HEARTBEAT_MS)
    assert elections == []
    monkeypatch.undo()
    said = told(office.asks(with_range(office, "a", 0, 9, 5)))
    assert said["a"][0] == Error.COMPUTE_ASSIGNMENT.value
