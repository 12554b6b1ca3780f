"""Timers by key come due once, in order, at the latest time that they were set to."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.group.timing.alarms import Alarms


def test_alarms_come_due_in_order_and_once() -> None:
    alarms = Alarms[str]()
    for key, at_ms in (("c", 30), ("a", 10), ("b", 20)):
        alarms.set(key, at_ms)
    assert list(alarms.due(9)) == []
    assert list(alarms.due(20)) == ["a", "b"]
    assert list(alarms.due(99)) == ["c"]
    assert list(alarms.due(99)) == []


def test_an_alarm_that_is_set_anew_counts_from_then() -> None:
    alarms = Alarms[str]()
    alarms.set("later", 10)
    alarms.set("later", 30)
    alarms.set("earlier", 30)
    alarms.set("earlier", 10)
    assert list(alarms.due(20)) == ["earlier"]
    assert list(alarms.due(30)) == ["later"]


def test_an_alarm_may_be_cancelled_and_set_again() -> None:
    alarms = Alarms[str]()
    alarms.set("a", 10)
    alarms.cancel("a")
    assert list(alarms.due(10)) == []
    alarms.set("a", 20)
    assert list(alarms.due(20)) == ["a"]


def test_an_alarm_may_be_set_while_others_come_due() -> None:
    alarms = Alarms[str]()
    alarms.set("a", 10)
    found = list[str]()
    for key in alarms.due(20):
        found.append(key)
        if len(found) < 3:
            alarms.set(key, 15)
    assert found == ["a", "a", "a"]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 50)) | st.integers(0, 50)
)


@given(STEPS)
def test_alarms_are_what_a_plain_dict_of_times_would_be(
    steps: list[tuple[str, int | None] | int],
) -> None:
    alarms, plain = Alarms[str](), dict[str, int]()
    for step in steps:
        match step:
            case (key, None):
                alarms.cancel(key)
                plain.pop(key, None)
            case (key, int() as at_ms):
                alarms.set(key, at_ms)
                plain[key] = at_ms
            case int() as now_ms:
                due = {key for key, at_ms in plain.items() if at_ms <= now_ms}
                assert sorted(alarms.due(now_ms)) == sorted(due)
                plain = {key: at_ms for key, at_ms in plain.items() if key not in due}
            case _:
                raise AssertionError(step)
