"""Which requests are new: each process counts its own (PROTOCOL §3, Identity)."""

import tracemalloc
from dataclasses import replace

import pytest

from fairlead.actors.group.members.request_filter import (
    NOBODY,
    STRANGERS,
    RequestFilter,
    first_epoch,
)
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.group import NOT_STARTED, Member
from fairlead.events.records import MemberMetadata


def seats(*names: str) -> dict[str, Member]:
    """Members of these ids, each of process A."""
    return {name: Member(MemberMetadata(name, incarnation="A"), NOT_STARTED) for name in names}


def request(incarnation: str, sequence: int, member: str = "m") -> Heartbeat:
    """One request of one process."""
    return Heartbeat("connect", member, 1, incarnation, sequence)


def test_an_older_request_stays_refused_after_another_process_spoke() -> None:
    requests = RequestFilter()
    asked = [request("A", 5), request("B", 1), request("A", 4), request("A", 5), request("A", 6)]
    assert [requests.admits(each) for each in asked] == [True, True, False, False, True]


def test_an_older_request_stays_refused_after_the_member_is_gone() -> None:
    requests = RequestFilter()
    assert requests.admits(request("A", 5))
    requests.forget("m")
    assert not requests.admits(request("A", 5))


def test_members_count_apart() -> None:
    requests = RequestFilter()
    asked = [request("A", 5), request("A", 1, "n"), request("A", 1, "n"), request("A", 2, "n")]
    assert [requests.admits(each) for each in asked] == [True, True, False, True]


def test_clients_without_an_incarnation_always_pass() -> None:
    requests = RequestFilter()
    assert [requests.admits(request("", number)) for number in (5, 5, 1)] == [True, True, True]


MANY = 20 * STRANGERS


@pytest.mark.parametrize("is_namesake", [False, True], ids=["own-id", "id-of-a-member"])
def test_any_number_of_strangers_is_remembered_in_bounded_memory(*, is_namesake: bool) -> None:
    requests = RequestFilter(seats("m"), 7)
    mine = replace(request("A", 5), coordinator_epoch=7)
    assert requests.admits(mine)
    tracemalloc.start()
    try:
        for number in range(MANY):
            member_id = "m" if is_namesake else f"stranger-{number}"
            assert requests.admits(replace(mine, member_id=member_id, incarnation=f"{number}"))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1 << 20
    assert not requests.admits(mine), "a member's requests are never forgotten"


def test_what_somebody_forgotten_sent_before_is_not_carried_out_again() -> None:
    requests = RequestFilter(NOBODY, 7)
    join = Heartbeat("connect", "m", 0, "A", 5, owned=(), coordinator_epoch=7)
    assert (requests.is_stale(join), requests.admits(join), requests.admits(join)) == (
        False,
        True,
        False,
    )
    for number in range(STRANGERS):
        requests.admits(replace(join, member_id=f"stranger-{number}"))
    assert requests.is_stale(join)
    assert not requests.is_stale(replace(join, coordinator_epoch=requests.coordinator_epoch))


def test_members_are_not_troubled_when_strangers_are_forgotten() -> None:
    requests = RequestFilter(seats("m"), 7)
    beat = replace(request("A", 5), coordinator_epoch=7)
    assert requests.admits(beat)
    for number in range(STRANGERS):
        requests.admits(replace(beat, member_id=f"stranger-{number}"))
    assert requests.coordinator_epoch == 8
    assert not requests.is_stale(replace(beat, sequence=6))


def test_many_members_are_kept_without_a_new_number() -> None:
    names = [f"m-{number}" for number in range(3 * STRANGERS)]
    requests = RequestFilter(seats(*names), 7)
    for name in names:
        assert requests.admits(request("A", 1, name))
    assert requests.coordinator_epoch == 7
    assert not any(requests.admits(request("A", 1, name)) for name in names)


def test_two_processes_of_a_coordinator_never_have_the_same_number() -> None:
    requests = RequestFilter(NOBODY, first_epoch(1))
    for number in range(20 * STRANGERS):
        requests.admits(request("A", 1, f"stranger-{number}"))
    assert first_epoch(1) < requests.coordinator_epoch < first_epoch(2)
