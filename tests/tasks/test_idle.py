"""Idle tasks poll often while that is cheap, and less often where it is expensive."""

# pyright: reportPrivateUsage=false

import threading
from contextlib import ExitStack
from threading import Event, Thread

from fairlead.runtime.pipeline.tasks.contention import IdlePauses
from fairlead.runtime.pipeline.tasks.restarts import Halt

NEVER_S = 3600.0


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


def sleeping(pauses: IdlePauses, halt: Halt, wake: Event, seconds: float) -> Thread:
    """Return a thread that sleeps."""
    thread = Thread(target=pauses.sleep, args=(halt, wake, seconds), daemon=True)
    thread.start()
    return thread


def enders() -> list[Thread]:
    return [each for each in threading.enumerate() if each.name == "idle-pauses"]


def test_a_short_pause_does_not_wait_for_a_long_one_that_began_before() -> None:
    pauses, halt = IdlePauses(), Halt()
    longest = sleeping(pauses, halt, Event(), NEVER_S)
    for seconds in (0.01, 0.0, -1.0):
        pauses.sleep(Halt(), Event(), seconds)
    assert longest.is_alive()
    halt.drain()
    longest.join()


def test_one_thread_ends_all_pauses_and_ends_itself_when_there_are_none() -> None:
    pauses, halts = IdlePauses(), [Halt() for _ in range(20)]
    others = len(enders())
    threads = [sleeping(pauses, each, Event(), NEVER_S) for each in halts]
    pauses.sleep(Halt(), Event(), 0.01)
    assert len(enders()) <= others + 1
    for halt in halts:
        halt.drain()
    for each in threads:
        each.join()
    pauses.sleep(Halt(), Event(), 0.0)
    assert not pauses._waiting


def test_a_pause_ends_early_if_its_event_is_set_or_its_caller_is_to_end() -> None:
    pauses, halt, wake = IdlePauses(), Halt(), Event()
    first, second = (
        sleeping(pauses, Halt(), wake, NEVER_S),
        sleeping(pauses, halt, Event(), NEVER_S),
    )
    wake.set()
    first.join()
    halt.drain()
    second.join()
    pauses.sleep(halt, Event(), NEVER_S)
