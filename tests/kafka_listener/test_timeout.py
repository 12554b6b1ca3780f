"""A connection waits as long as its state allows, to the second, and for ever where it must."""

from types import SimpleNamespace

import pytest

from fairlead.runtime.kafka.client import timeout
from fairlead.runtime.kafka.client.timeout import ConnectionState, ConnectionTimeout
from fairlead.runtime.kafka.wire.bounds import IDLE_SECONDS


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> ConnectionTimeout:
    """A connection that was opened at 100 s."""
    monkeypatch.setattr(timeout, "time", SimpleNamespace(monotonic=lambda: 100.0))
    return ConnectionTimeout()


def test_a_state_is_over_at_its_deadline_and_not_before(limit: ConnectionTimeout) -> None:
    assert limit.state is ConnectionState.IDLE
    assert [limit.is_over(100 + IDLE_SECONDS + each) for each in (-0.1, 0, 0.1)] == [0, 1, 1]
    limit.wait_for(ConnectionState.READING, 30)
    assert [limit.is_over(each) for each in (129.9, 130.0)] == [False, True]


def test_a_state_without_a_timeout_is_never_over(limit: ConnectionTimeout) -> None:
    limit.wait_for(ConnectionState.ANSWERING)
    assert (limit.state, limit.is_over(1e12)) == (ConnectionState.ANSWERING, False)
    limit.wait_for_request()
    assert limit.is_over(1e12)
