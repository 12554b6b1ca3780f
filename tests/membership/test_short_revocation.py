"""A member that no answer reaches is fenced before its work may be taken away (PROTOCOL §8)."""

from fairlead.actors.worker.instructions import Fence
from fairlead_tests.membership.driver import MARGIN_MS, REBALANCE_MS, seated


def test_a_session_longer_than_the_rebalance_timeout_does_not_put_off_the_fence() -> None:
    driver = seated()
    for _ in range(2):
        driver.answer(session_timeout_ms=10 * REBALANCE_MS)
    sent_ms = driver.now_ms
    driver.membership.tick(sent_ms)
    found = driver.passes(REBALANCE_MS - MARGIN_MS - 1)
    assert not [each for each in found if isinstance(each, Fence)]
    assert [type(each) for each in driver.passes(1)] == [Fence]
