"""A wall clock that is set back keeps parked work waiting no longer than it was to wait."""

from dataclasses import replace

from fairlead_tests.coordination.driver import SESSION_MS, SETTINGS, CoordinatorDriver
from fairlead_tests.decider import resources

DELAY_MS = 20_000


def test_a_wall_clock_that_is_set_back_does_not_stall_parked_work(
    driver: CoordinatorDriver,
) -> None:
    driver.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    driver.open()
    driver.put("A")
    for member in "ab":
        driver.asks(driver.joining(member))
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.request("a", owned=tuple(resources("A"))))
    assert driver.group.owner == dict.fromkeys(resources("A"), "a")
    for _ in range(3):
        driver.beat("b")
        driver.passes(SESSION_MS // 3)
    driver.beat("b")
    driver.passes(SESSION_MS // 3)
    assert set(driver.group.members) == {"b"}
    driver.compute("b")
    assert driver.group.schedule.parked.keys() == resources("A")

    driver.wall_jump_ms = -3_600_000
    for _ in range(DELAY_MS // 2_000):
        driver.passes(2_000)
        driver.beat("b")
    assert driver.group.schedule.fired == resources("A")
    driver.compute("b")
    driver.beat("b")
    assert driver.group.owner == dict.fromkeys(resources("A"), "b")
