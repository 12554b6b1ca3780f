"""A stream beside letters: messages in their order, from those who hold the key alone."""

import pickle
import select
import socket
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from secrets import token_bytes

import pytest

from fairlead.actors.transport import tcp
from fairlead.actors.transport.stream import (
    MOST_STRANGERS,
    MessageStream,
    StreamEndedError,
    StreamPort,
    dial,
)

HOST = "127.0.0.1"
KEY = token_bytes(32)
SECONDS = 60.0
LARGE = b"x" * (8 << 20)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamPort]:
    monkeypatch.setattr(tcp, "_key", KEY)
    port = StreamPort()
    yield port
    for each in [*port._streams.values()]:
        port.close(each)
    port._listening.close()


def connected(port: StreamPort) -> socket.socket:
    plain = socket.create_connection((HOST, port.number), SECONDS)
    [*port.receive(port.watched)]
    return plain


@contextmanager
def greeted(port: StreamPort) -> Generator[MessageStream]:
    """Have a stream, the other end of which is served meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        dialled = pool.submit(dial, port.number, KEY, HOST, SECONDS)
        while not dialled.done():
            until_quiet(port)
    stream = dialled.result()
    yield stream
    stream.close()


def until_quiet(port: StreamPort) -> list[object]:
    """Return all messages that come."""
    found: list[object] = []
    while ready := select.select(port.watched, [], [], 0.05)[0]:
        found += [message for _, message in port.receive(ready)]
    return found


def test_messages_arrive_in_their_order_and_are_answered(port: StreamPort) -> None:
    with greeted(port) as stream:
        for number in range(5):
            assert stream.send(("ask", number))
        found: list[object] = []
        while ready := select.select(port.watched, [], [], 0.05)[0]:
            for end, message in port.receive(ready):
                found.append(message)
                end.send(message)
        assert found == [("ask", number) for number in range(5)]
        assert [stream.receive() for _ in range(6)] == [*found, None]


def test_a_large_message_goes_on_as_the_other_end_reads(port: StreamPort) -> None:
    with greeted(port) as stream:
        assert not stream.send(LARGE)
        found: list[object] = []
        deadline = time.monotonic() + SECONDS
        while not found:
            assert time.monotonic() < deadline
            stream.flush()
            found = [message for _, message in port.receive(port.watched)]
        assert found == [LARGE]


def test_who_does_not_hold_the_key_is_let_go_and_nothing_of_it_is_loaded(
    port: StreamPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(pickle, "loads", loaded.append)
    plain = connected(port)
    plain.sendall(pickle.dumps("hello") * 100)
    assert until_quiet(port) == []
    assert len(port.watched) == 1
    with pytest.raises(StreamEndedError):
        dial(port.number, token_bytes(32), HOST, 0.05)
    assert until_quiet(port) == []
    assert loaded == []
    plain.close()


def test_an_end_that_has_gone_is_told(port: StreamPort) -> None:
    with greeted(port) as stream:
        stream.send("last")
        (end,) = [end for end, _ in port.receive(port.watched)]
        port.close(end)
        with pytest.raises(StreamEndedError):
            stream.receive()
        assert len(port.watched) == 1


def test_strangers_are_few_and_whoever_has_proven_the_key_stays(port: StreamPort) -> None:
    with greeted(port) as stream:
        stream.send("here")
        assert until_quiet(port) == ["here"]
        strangers = [connected(port) for _ in range(MOST_STRANGERS + 3)]
        assert len(port.watched) == 1 + 1 + MOST_STRANGERS
        stream.send("still here")
        assert until_quiet(port) == ["still here"]
        for each in strangers:
            each.close()
