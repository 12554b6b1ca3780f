"""A host with unread input does not count as silent."""

import socket
from typing import Any

from fairlead.actors.shards.host_connection import HostConnection


def test_unread_bytes_of_a_host_are_input() -> None:
    host = HostConnection(lambda: None, lambda _seconds, _payload: None)
    assert not host.has_input, "there is no host"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream: Any = ours
        host._switch_to(1, stream)
        assert not host.has_input
        theirs.send(b"x")
        assert host.has_input
        ours.recv(1)
        assert not host.has_input
    assert not host.has_input, "it has gone"
