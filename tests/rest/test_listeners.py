import socket

import pytest

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.interfaces.rest.server.listeners import (
    CannotListen,
    listen,
    parse,
    where,
)


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("http://127.0.0.1:8083", HostPort("127.0.0.1", 8083)),
        ("http://:8083", HostPort("127.0.0.1", 8083)),
        ("http://h", HostPort("h", 8083)),
        ("http://0.0.0.0:8083/", HostPort("0.0.0.0", 8083)),
        ("http://[::1]:8083", HostPort("::1", 8083)),
    ],
)
def test_a_listener_without_a_host_is_on_loopback(text: str, listener: HostPort) -> None:
    assert parse(text) == listener


@pytest.mark.parametrize(
    "text", ["", "8083", "https://:8083", "http://h:x", "http://h:1/x", "http://["]
)
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(CannotListen, match="is no listener"):
        parse(text)


def test_a_port_that_is_taken_leaves_nothing_open() -> None:
    (taken,) = listen([HostPort("127.0.0.1", 0)])
    with taken:
        assert where(taken).url.startswith("http://127.0.0.1:")
        with pytest.raises(CannotListen, match="Address already in use"):
            listen([HostPort("127.0.0.1", 0), where(taken)])


def test_answers_are_not_held_back_by_nagle() -> None:
    (bound,) = listen([HostPort("127.0.0.1", 0)])
    with bound:
        assert bound.proto == socket.IPPROTO_TCP
