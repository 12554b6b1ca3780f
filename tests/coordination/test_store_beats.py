"""An owner whose store does not answer receives messages between two attempts.

A process receives only while none of its timers is due, and an attempt takes longer than the time
from one beat to the next. What it never receives are its supervisor's questions whether it lives.
"""
# pyright: basic

import heapq
from typing import Any, cast

import pytest

from fairlead.actors.group.host import PAUSE_MS
from fairlead.actors.messages.commands import AddressedReply
from fairlead.actors.shards import host_actor
from fairlead.actors.shards.host_actor import BEAT_SECONDS, Beat, GroupActor
from fairlead.actors.timing import Now
from fairlead.events.stores.port import StoreAwayError

ATTEMPT_MS = 4_000


class AwayStore:
    """Logs whose store does not answer."""

    is_stored = True

    def __init__(self) -> None:
        self.now_ms = self.asked = 0
        self.timers: list[tuple[int, int, object]] = []

    def beat(self) -> None:
        """Ask in vain."""
        self.asked += 1
        self.now_ms += ATTEMPT_MS
        raise StoreAwayError("no answer")

    def wake_after(self, seconds: float, payload: object) -> None:
        """Set a timer."""
        at = self.now_ms + round(seconds * 1_000), len(self.timers), payload
        heapq.heappush(self.timers, at)

    def received_ms(self, owner: GroupActor) -> int:
        """Fire timers until it is asked once more; return how long the owner received meanwhile."""
        received_ms, asked = 0, self.asked
        while self.asked == asked:
            at_ms, _, payload = heapq.heappop(self.timers)
            idle_ms = max(0, at_ms - self.now_ms)
            self.now_ms, received_ms = self.now_ms + idle_ms, received_ms + idle_ms
            owner.woken(payload)
        return received_ms


@pytest.mark.parametrize("answers", [[], [AddressedReply("a", cast("Any", "answer"))]])
def test_an_owner_whose_store_is_away_receives_messages_between_two_attempts(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answers: list[AddressedReply],
) -> None:
    store, owner = AwayStore(), GroupActor()
    monkeypatch.setattr(owner, "wake_after", store.wake_after)
    monkeypatch.setattr(host_actor, "clocks", lambda: Now(0, store.now_ms))
    owner._group_host, owner._logs = cast("Any", object()), cast("Any", store)
    owner.wake_after(BEAT_SECONDS, Beat())
    assert list(owner.confirmed(answers, has_written=False)) == []
    store.received_ms(owner)
    assert all(store.received_ms(owner) >= PAUSE_MS for _ in range(5))
    assert caplog.messages == ["nothing is answered until the store is back: no answer"]  # once
