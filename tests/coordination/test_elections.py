"""Who is asked to compute, and asked again, as its members hear it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.computing import compute
from fairlead.actors.group.computing import elect as elect_module
from fairlead.actors.messages.computing import Install, Prepare, PrepareReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead_tests.coordination.office import HEARTBEAT_MS, REBALANCE_MS, Office, told
from fairlead_tests.decider import resources


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
    assignors = (ClientAssignor("balanced", low, high, version),)
    return replace(office.joining(member), assignors=assignors)


def who_computes(office: Office) -> str:
    """Return who is given what it needs to compute."""
    for member_id, member in office.group.members.items():
        (prepared,) = office.send(Prepare("connect", member_id, member.current.member_epoch))
        if isinstance(prepared.reply, PrepareReply) and prepared.reply.error is Error.NONE:
            return member_id
    return ""


@pytest.fixture
def elections(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Count the elections from now on."""
    counted = list[object]()

    def elect(*asked: object) -> object:
        counted.append(asked)
        return real(*asked)

    real: Callable[..., object] = elect_module.elect
    monkeypatch.setattr(compute, "elect", elect)
    return counted


def test_a_plain_heartbeat_elects_nobody_while_somebody_computes(
    office: Office, elections: list[object]
) -> None:
    for member in "abc":
        office.asks(office.joining(member))
    assert len(elections) == 1
    for _ in range(3):
        office.asks(*(office.joining(member) for member in "abc"))
        office.passes(HEARTBEAT_MS)
    assert len(elections) == 1


def test_while_computations_are_spaced_nobody_is_elected_until_the_next_may_begin(
    office: Office, elections: list[object]
) -> None:
    office.settings = replace(office.settings, assignment_interval_ms=1_000)
    office.open()
    office.put("A")
    office.asks(office.joining("a"))
    office.compute("a")
    assert len(elections) == 1, "the first begins at once"
    for member in "bc":
        assert told(office.asks(office.joining(member))) == {member: ("NONE", "")}
    office.beat("a")
    assert office.beat("a") == [], "there is nothing to tell it yet"
    office.passes(999)
    assert (len(elections), office.group.assignment_epoch) == (1, 1)
    assert told(office.passes(1))["a"][0] == "COMPUTE_ASSIGNMENT", "one for both that joined"
    assert len(elections) == 2
    office.compute("a")
    assert office.group.assignment_epoch == office.group.group_epoch == 3


def test_an_interval_that_is_taken_back_keeps_nobody_waiting(office: Office) -> None:
    office.send(ConfigureGroup("connect", {"assignment.interval.ms": "2147483647"}))
    office.asks(office.joining("a"))
    office.compute("a")
    office.put("A")
    office.passes(5_000)
    assert office.group.assignment_epoch < office.group.group_epoch
    office.send(ConfigureGroup("connect", {"assignment.interval.ms": None}))
    office.passes(1)
    assert who_computes(office) == "a"


def test_another_in_place_of_one_that_went_need_not_wait_for_the_interval(office: Office) -> None:
    office.settings = replace(office.settings, assignment_interval_ms=60_000)
    office.open()
    for member in "ab":
        office.asks(office.joining(member))
    office.asks(office.request("a", -1))
    assert who_computes(office) == "b"


def test_a_wall_clock_that_jumps_neither_times_a_computation_out_nor_lets_it_run_on(
    office: Office,
) -> None:
    for member in "ab":
        office.asks(office.joining(member))
    computes = list[str]()
    for jump_ms in (3_600_000, -3_600_000):
        office.wall_jump_ms = jump_ms
        for _ in range(REBALANCE_MS // 2 // 5_000):
            computes.append(who_computes(office))
            office.passes(5_000)
            office.asks(*(office.joining(member) for member in "ab"))
    assert [*computes, who_computes(office)] == [*"a" * 12, "b"]


def test_a_wall_clock_that_is_set_back_stalls_a_retry_no_longer_than_the_longest_back_off(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    (prepared,) = office.send(Prepare("connect", "a", 0))
    assert isinstance(prepared.reply, PrepareReply)
    office.send(Install("connect", "a", 0, 1, None, "no luck"))
    office.passes(4_999)
    assert office.group.group_epoch == 1
    office.wall_jump_ms = -3_600_000
    office.passes(1)
    assert (office.group.group_epoch, office.group.bump and office.group.bump.cause) == (
        2,
        Cause(Why.ASSIGNOR_RETRY),
    )


def test_if_nobody_qualifies_after_a_departure_the_coordinator_computes_itself(
    office: Office,
) -> None:
    office.put("A")
    office.asks(with_range(office, "a", 0, 9, 5))
    office.compute("a")
    office.asks(with_range(office, "b", 0, 3, 1))
    office.asks(with_range(office, "c", 4, 6, 6))
    office.compute("a")
    office.asks(office.request("a", -1))
    target = office.group.target
    assert (target.assignment_epoch, target.assignor, target.computed_by) == (
        office.group.group_epoch,
        "uniform",
        "coordinator",
    )
    assert target.members == {"b": resources("A"), "c": resources("")}
    said = told(office.asks(with_range(office, "a", 0, 9, 5)))
    assert said["a"][0] == Error.COMPUTE_ASSIGNMENT.value, "who is able is asked again"
