"""What waits to be sent: it costs what changes, not what waits."""

from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from types import SimpleNamespace
from typing import Any

from fairlead.actors.transport.tcp import Transport


@dataclass
class Intent:
    """A message that waits to be sent."""

    is_late: bool
    asked: int = 0
    told: list[Any] = field(default_factory=list)

    def expired(self) -> bool:
        self.asked += 1
        return self.is_late

    def tx_done(self, status: Any) -> None:
        self.told.append(status)


def test_of_a_thousand_messages_that_wait_only_the_first_are_looked_at() -> None:
    late, waiting = [Intent(True) for _ in range(3)], [Intent(False) for _ in range(1_000)]
    transport: Any = SimpleNamespace(
        _aTB_lock=Lock(), _aTB_queuedPendingTransmits=deque([*late, *waiting])
    )
    assert Transport._complete_expired_intents(transport) == (1_000, True)
    assert Transport._complete_expired_intents(transport) == (1_000, False)
    assert [len(each.told) for each in late] == [1, 1, 1], "they are given up, once"
    assert [each.asked for each in waiting] == [2] + [0] * 999
    assert [*transport._aTB_queuedPendingTransmits] == waiting
