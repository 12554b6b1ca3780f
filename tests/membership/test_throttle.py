"""A member that was told to be silent is, except where safety needs a word (PROTOCOL §3)."""

from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.heartbeats import BACKOFF_MS
from fairlead.actors.worker.instructions import Fence, Gone, Start, Stop
from fairlead.actors.worker.states import State
from fairlead.events.model import ClientAssignor
from fairlead_tests.membership.driver import (
    BEGUN_MS,
    HEARTBEAT_MS,
    MARGIN_MS,
    PATIENCE_MS,
    REBALANCE_MS,
    SESSION_MS,
    MemberDriver,
    resources,
    seated,
    spelled,
)

THROTTLE_MS = 2_000
IN_TIME_MS = SESSION_MS - MARGIN_MS - PATIENCE_MS
"""How long after its last answered request a member can be silent and keep its session."""


def silence_of(driver: MemberDriver, longest_ms: int = 60_000) -> int:
    """Let time pass until the member speaks; return how long that was."""
    begun_ms, count = driver.now_ms, len(driver.sent)
    while len(driver.sent) == count and driver.now_ms < begun_ms + longest_ms:
        driver.passes(1)
    return driver.now_ms - begun_ms


def test_no_request_goes_out_before_the_throttle_time_has_passed() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    assert silence_of(driver) == THROTTLE_MS
    assert not driver.sent[-1].is_full, "nothing was lost"


def test_the_end_of_the_silence_is_told_in_advance() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    assert driver.membership.next_tick_ms() == driver.now_ms + THROTTLE_MS


def test_what_is_granted_starts_at_once_and_is_reported_after_the_silence() -> None:
    driver = seated()
    assert driver.answer("A A-0 A-1", throttle_time_ms=THROTTLE_MS) == [Start(resources("A-1"), 7)]
    assert silence_of(driver) == THROTTLE_MS
    assert spelled(driver.sent[-1].owned) == "A A-0 A-1"


def test_news_of_the_member_waits_for_the_end_of_the_silence() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    assert (
        driver.membership.change_assignors(
            (ClientAssignor("balanced", metadata=b"1"),), driver.now_ms
        )
        == []
    )
    assert silence_of(driver) == THROTTLE_MS
    assert driver.sent[-1].assignors == (ClientAssignor("balanced", metadata=b"1"),)


def test_a_shorter_throttle_does_not_cut_a_longer_one_short() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    driver.passes(THROTTLE_MS)
    driver.answer(throttle_time_ms=THROTTLE_MS)
    assert silence_of(driver) == THROTTLE_MS


def test_a_silence_ends_in_time_to_keep_the_session() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=3_600_000)
    assert silence_of(driver) == IN_TIME_MS
    driver.now_ms += PATIENCE_MS - 1
    assert (driver.answer(), driver.state()) == ([], State.STABLE)


def test_a_member_that_is_throttled_for_ever_is_never_fenced() -> None:
    driver = seated()
    for _ in range(50):
        driver.answer(throttle_time_ms=3_600_000)
        silence_of(driver)
    assert (driver.state(), len(driver.sent)) == (State.STABLE, 54)


def test_the_report_of_a_revocation_waits_while_its_deadline_is_far() -> None:
    driver = seated()
    assert driver.answer("A", throttle_time_ms=THROTTLE_MS) == [Stop(resources("A-0"))]
    driver.stopped("A-0")
    assert silence_of(driver) == THROTTLE_MS
    assert spelled(driver.sent[-1].owned) == "A"


def test_the_report_of_a_revocation_does_not_wait_when_its_deadline_is_near() -> None:
    driver = seated()
    revoke_by_ms = driver.now_ms + REBALANCE_MS
    driver.answer("A")
    while driver.now_ms + HEARTBEAT_MS < revoke_by_ms - MARGIN_MS - PATIENCE_MS:
        driver.passes(HEARTBEAT_MS)
        driver.answer()
    driver.now_ms = revoke_by_ms - MARGIN_MS - PATIENCE_MS - 100
    driver.answer(throttle_time_ms=3_600_000)
    count = len(driver.sent)
    driver.stopped("A-0")
    assert silence_of(driver) == 100
    assert [spelled(each.owned) for each in driver.sent[count:]] == ["A"]
    driver.answer(epoch=2)
    assert driver.state() is State.STABLE


def test_a_goodbye_does_not_wait() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    driver.leave()
    driver.stopped("A A-0")
    assert (driver.sent[-1].member_epoch, driver.state()) == (-1, State.LEAVING)
    assert driver.answer(epoch=-1) == [Gone()]


def test_a_goodbye_that_is_refused_for_now_does_not_wait_for_long() -> None:
    driver = seated("")
    driver.leave()
    driver.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS, throttle_time_ms=3_600_000)
    assert silence_of(driver) == BACKOFF_MS


def test_a_refusal_may_throttle_as_well() -> None:
    driver = MemberDriver()
    driver.join()
    driver.answer(error=Error.COORDINATOR_LOAD_IN_PROGRESS, throttle_time_ms=THROTTLE_MS)
    assert silence_of(driver) == THROTTLE_MS


def test_a_rejoin_waits_for_the_end_of_the_silence() -> None:
    driver = seated()
    driver.answer(error=Error.UNKNOWN_MEMBER_ID, throttle_time_ms=THROTTLE_MS)
    driver.stopped("A A-0")
    assert silence_of(driver) == THROTTLE_MS
    assert (driver.sent[-1].member_epoch, driver.state()) == (0, State.JOINING)


def test_a_silence_is_owed_to_nobody_once_somebody_new_serves_the_group() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=THROTTLE_MS)
    count = len(driver.sent)
    driver.take(driver.membership.reconnect(driver.now_ms))
    assert len(driver.sent) == count + 1


def test_a_silence_moves_no_deadline() -> None:
    driver = seated()
    driver.answer(throttle_time_ms=3_600_000)
    assert driver.membership.end_ms() == BEGUN_MS + SESSION_MS
    silence_of(driver)
    assert [type(each) for each in driver.passes(PATIENCE_MS)] == [Fence]
