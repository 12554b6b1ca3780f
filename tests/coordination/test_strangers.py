"""Another process under a live member's id is refused, and takes nothing from who sits there."""

from dataclasses import replace

from fairlead.actors.messages.orders import ConfigureGroup
from fairlead_tests.coordination.office import HEARTBEAT_MS, Office, sequences, told


def test_a_stranger_under_a_members_id_takes_no_held_request_away(office: Office) -> None:
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    assert office.beat("a") == [], "it is held"
    held = office.sequences["a"]
    stranger = replace(office.joining("a"), incarnation="another")
    assert told(office.asks(stranger)) == {"a": ("UNRELEASED_INSTANCE_ID", None)}
    assert sequences(office.passes(HEARTBEAT_MS)) == [("a", held)]


def test_a_strangers_requests_are_not_charged_to_the_member(office: Office) -> None:
    office.asks(office.joining("a"))
    office.compute("a")
    office.send(ConfigureGroup("connect", {"member.request.rate": "1"}))
    for _ in range(20):
        office.asks(replace(office.joining("a"), incarnation="another"))
        office.sequences["a"] -= 1
    (answer,) = [each for each in office.asks(office.full("a")) if each.to == "a"]
    assert getattr(answer.reply, "throttle_time_ms", None) == 0
