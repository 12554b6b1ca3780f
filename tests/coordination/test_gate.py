"""Which requests are new: each process counts its own (PROTOCOL §3, Identity)."""

from fairlead.actors.group.timing.gate import Gate
from fairlead.actors.messages.heartbeat import Heartbeat


def request(incarnation: str, sequence: int, member: str = "m") -> Heartbeat:
    """One request of one process."""
    return Heartbeat("connect", member, 1, incarnation, sequence)


def test_an_older_request_stays_refused_after_another_process_spoke() -> None:
    gate = Gate()
    asked = [request("A", 5), request("B", 1), request("A", 4), request("A", 5), request("A", 6)]
    assert [gate.admits(each) for each in asked] == [True, True, False, False, True]


def test_an_older_request_stays_refused_after_the_member_is_gone() -> None:
    gate = Gate()
    assert gate.admits(request("A", 5))
    gate.forget("m")
    assert not gate.admits(request("A", 5))


def test_members_count_apart() -> None:
    gate = Gate()
    asked = [request("A", 5), request("A", 1, "n"), request("A", 1, "n"), request("A", 2, "n")]
    assert [gate.admits(each) for each in asked] == [True, True, False, True]


def test_clients_without_an_incarnation_always_pass() -> None:
    gate = Gate()
    assert [gate.admits(request("", number)) for number in (5, 5, 1)] == [True, True, True]
