"""A request that takes a held one's place takes its time as well."""

from fairlead_tests.coordination.driver import HEARTBEAT_MS, CoordinatorDriver, sequences


def test_a_member_that_asks_again_and_again_is_answered_when_its_first_request_was_due(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.beat("a")
    driver.compute("a")
    assert driver.beat("a") == []
    for _ in range(2):
        assert driver.passes(HEARTBEAT_MS // 3) == []
        assert driver.asks(driver.full("a")) == []
    answered = driver.passes(HEARTBEAT_MS // 3)
    assert sequences(answered) == [("a", driver.sequences["a"])]
