"""Another process under a live member's id is refused, and takes nothing from who sits there."""

from dataclasses import replace

from fairlead.actors.messages.orders import ConfigureGroup
from fairlead_tests.coordination.driver import HEARTBEAT_MS, CoordinatorDriver, sequences, told


def test_a_stranger_under_a_members_id_takes_no_held_request_away(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    assert driver.beat("a") == [], "it is held"
    held = driver.sequences["a"]
    stranger = replace(driver.joining("a"), incarnation="another")
    assert told(driver.asks(stranger)) == {"a": ("UNRELEASED_INSTANCE_ID", None)}
    assert sequences(driver.passes(HEARTBEAT_MS)) == [("a", held)]


def test_a_strangers_requests_are_not_charged_to_the_member(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.send(ConfigureGroup("connect", {"member.request.rate": "1"}))
    for _ in range(20):
        driver.asks(replace(driver.joining("a"), incarnation="another"))
        driver.sequences["a"] -= 1
    (answer,) = [each for each in driver.asks(driver.full("a")) if each.to == "a"]
    assert getattr(answer.reply, "throttle_time_ms", None) == 0
