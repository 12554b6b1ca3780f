"""Idle tasks poll often while that is cheap, and less often where it is expensive."""

from contextlib import ExitStack

from fairlead.runtime.pipeline.tasks.contention import IdlePauses


def pauses_of(tasks: int, poll_s: float, longest_s: float = 0.5) -> float:
    pauses = IdlePauses()
    with ExitStack() as stack:
        for _ in range(tasks):
            stack.enter_context(pauses.register())
        return pauses.after(poll_s, longest_s)


def test_one_task_polls_a_small_folder_fifty_times_a_second() -> None:
    assert pauses_of(1, 0.00005) == 0.02


def test_the_polls_of_all_tasks_together_take_a_quarter_of_a_percent_of_a_core() -> None:
    assert pauses_of(8, 0.0001) == 8 * 0.0001 / 0.0025
    assert pauses_of(1, 0.001) == 0.4


def test_no_task_waits_longer_than_its_poll_interval_if_that_takes_a_tenth_of_a_core() -> None:
    assert pauses_of(500, 0.0001) == 0.5
    assert pauses_of(1, 0.0001, longest_s=0.01) == 0.01


def test_the_polls_of_a_thousand_tasks_take_a_tenth_of_a_core_unless_each_is_expensive() -> None:
    assert pauses_of(1000, 0.0002) == 2.0
    assert pauses_of(1000, 0.1) == 5.0, "ten poll intervals"


def test_a_task_that_has_ended_is_no_longer_counted() -> None:
    pauses = IdlePauses()
    for _ in range(100):
        with pauses.register():
            pass
    assert pauses.after(0.00005, 0.5) == 0.02
