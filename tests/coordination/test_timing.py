"""Timers by key come due once, in order, at the latest time that they were set to."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.timing import TimerQueue


def test_alarms_come_due_in_order_and_once() -> None:
    timers = TimerQueue[str]()
    for key, at_ms in (("c", 30), ("a", 10), ("b", 20)):
        timers.set(key, at_ms)
    assert list(timers.due(9)) == []
    assert list(timers.due(20)) == ["a", "b"]
    assert list(timers.due(99)) == ["c"]
    assert list(timers.due(99)) == []


def test_an_alarm_that_is_set_anew_counts_from_then() -> None:
    timers = TimerQueue[str]()
    timers.set("later", 10)
    timers.set("later", 30)
    timers.set("earlier", 30)
    timers.set("earlier", 10)
    assert list(timers.due(20)) == ["earlier"]
    assert list(timers.due(30)) == ["later"]


def test_an_alarm_may_be_cancelled_and_set_again() -> None:
    timers = TimerQueue[str]()
    timers.set("a", 10)
    timers.cancel("a")
    assert list(timers.due(10)) == []
    timers.set("a", 20)
    assert list(timers.due(20)) == ["a"]


def test_an_alarm_may_be_set_while_others_come_due() -> None:
    timers = TimerQueue[str]()
    timers.set("a", 10)
    found = list[str]()
    for key in timers.due(20):
        found.append(key)
        if len(found) < 3:
            timers.set(key, 15)
    assert found == ["a", "a", "a"]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 50)) | st.integers(0, 50)
)


@given(STEPS)
def test_alarms_are_what_a_plain_dict_of_times_would_be(
    steps: list[tuple[str, int | None] | int],
) -> None:
    timers, plain = TimerQueue[str](), dict[str, int]()
    for step in steps:
        match step:
            case (key, None):
                timers.cancel(key)
                plain.pop(key, None)
            case (key, int() as at_ms):
                timers.set(key, at_ms)
                plain[key] = at_ms
            case int() as now_ms:
                due = {key for key, at_ms in plain.items() if at_ms <= now_ms}
                assert sorted(timers.due(now_ms)) == sorted(due)
                plain = {key: at_ms for key, at_ms in plain.items() if key not in due}
            case _:
                raise AssertionError(step)
