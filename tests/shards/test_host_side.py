"""A host counts as silent only by what it has not said, whoever has not read it yet."""

import socket
from typing import Any

from fairlead.actors.shards.host_side import HostSide


def test_what_a_host_has_said_and_nobody_has_read_is_news() -> None:
    host = HostSide(lambda: None, lambda _seconds, _payload: None)
    assert not host.has_news, "there is no host"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream: Any = ours
        host._begin(1, stream)
        assert not host.has_news
        theirs.send(b"x")
        assert host.has_news
        ours.recv(1)
        assert not host.has_news
    assert not host.has_news, "it has gone"
