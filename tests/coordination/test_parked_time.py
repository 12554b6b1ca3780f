"""A wall clock that is set back keeps parked work waiting no longer than it was to wait."""

from dataclasses import replace

from fairlead_tests.coordination.office import SESSION_MS, SETTINGS, Office
from fairlead_tests.decider import resources

DELAY_MS = 20_000


def test_a_wall_clock_that_is_set_back_does_not_stall_parked_work(office: Office) -> None:
    office.settings = replace(SETTINGS, max_delay_ms=DELAY_MS)
    office.open()
    office.put("A")
    for member in "ab":
        office.asks(office.joining(member))
    office.compute("a")
    office.beat("a")
    office.asks(office.request("a", owned=tuple(resources("A"))))
    assert office.group.owner == dict.fromkeys(resources("A"), "a")
    for _ in range(3):
        office.beat("b")
        office.passes(SESSION_MS // 3)
    office.beat("b")
    office.passes(SESSION_MS // 3)
    assert set(office.group.members) == {"b"}
    office.compute("b")
    assert office.group.schedule.parked.keys() == resources("A")

    office.wall_jump_ms = -3_600_000
    for _ in range(DELAY_MS // 2_000):
        office.passes(2_000)
        office.beat("b")
    assert office.group.schedule.fired == resources("A")
    office.compute("b")
    office.beat("b")
    assert office.group.owner == dict.fromkeys(resources("A"), "b")
