# pyright: basic
"""A load generator for the listener of an owner: workers of other nodes, over TLS, in a process.

`python -m fairlead_tests.benchmarks.node_load FOLDER PORT CONNECTIONS SECONDS` joins a member on
each connection, as the node does whose certificate lies in the folder. It prints `ready`, and after
a line of input each member sends full heartbeats, the next one as soon as the last one is answered.
Then it prints one JSON line.
"""

import json
import select
import socket
import ssl
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.runtime.kafka.wire.calls.carried import read_reply, write_message
from fairlead.runtime.kafka.wire.connect_messages import ConnectGroupAskRequest
from fairlead.runtime.kafka.wire.frames import Head, Request, read_response, write_request
from fairlead.runtime.kafka.wire.served import CONNECT_ASK
from fairlead_tests.benchmarks.wire_load import WARM_SECONDS, Load
from fairlead_tests.cluster.node import GROUP

HOST: Final = "127.0.0.1"
FIRST: Final = 1 << 20
"""The first number of a request: all have the same size in msgpack."""
MOST: Final = 1 << 16
LENGTH: Final = struct.Struct(">i")
NUMBER_AT: Final = 8
SHORTEST: Final = 4 + 4


class Lane:
    """The connection of one member, which has one heartbeat under way."""

    def __init__(self, context: ssl.SSLContext, port: int, name: str) -> None:
        plain = socket.create_connection((HOST, port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=HOST)
        self._name, self._number = name, FIRST
        self.epoch, self._coordinator = 0, -1
        self._template = bytearray()
        self._sequence_at = 0

    def ask(self) -> HeartbeatReply:
        """Send a full heartbeat, and return its answer."""
        self.prepare()
        self.send()
        (size,) = LENGTH.unpack(self._read(LENGTH.size))
        response = read_response(Head(CONNECT_ASK, 0, self._number), self._read(size))
        assert not response.error_code, response
        reply = read_reply(response.kind, response.body)
        assert isinstance(reply, HeartbeatReply)
        self.epoch, self._coordinator = reply.member_epoch, reply.coordinator_epoch
        return reply

    def prepare(self) -> None:
        """Encode a heartbeat, of which the next ones differ by their numbers alone."""
        said: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "server_assignor": "uniform"}
        said |= {"owned": (), "url": self._name, "coordinator_epoch": self._coordinator}
        beat = Heartbeat(GROUP, self._name, self.epoch, self._name, FIRST, **said)
        kind, body = write_message(beat)
        ask = ConnectGroupAskRequest(group_id=GROUP, member_id="", kind=kind, body=body)
        frame = write_request(Request(Head(CONNECT_ASK, 0, FIRST), "fairlead-node", ask))
        self._template = bytearray(LENGTH.pack(len(frame)) + frame)
        self._sequence_at = self._template.rindex(b"\xce" + LENGTH.pack(FIRST)) + 1

    def send(self) -> None:
        """Send the next heartbeat."""
        self._number += 1
        LENGTH.pack_into(self._template, NUMBER_AT, self._number)
        LENGTH.pack_into(self._template, self._sequence_at, self._number)
        self.socket.send(self._template)

    def take(self) -> bool:
        """Return whether the answer has come."""
        try:
            answer = self.socket.recv(MOST)
        except ssl.SSLWantReadError:
            return False
        size, number = LENGTH.unpack_from(answer)[0], LENGTH.unpack_from(answer, 4)[0]
        assert size + LENGTH.size == len(answer), answer
        assert number == self._number, answer
        return True

    def _read(self, size: int) -> bytes:
        pieces = b""
        while len(pieces) < size:
            piece = self.socket.recv(size - len(pieces))
            assert piece, "the listener has hung up"
            pieces += piece
        return pieces


def settle(lanes: Sequence[Lane]) -> None:
    """Join all members, and wait until none of them hears anything new."""
    while True:
        before = [each.epoch for each in lanes]
        errors = {each.ask().error for each in lanes}
        if errors == {Error.NONE} and before == [each.epoch for each in lanes]:
            return
        time.sleep(0.2)


def play(lanes: Sequence[Lane], seconds: float) -> Load:
    """Send heartbeats on all connections; the first seconds are a warm-up."""
    poll, clock = select.epoll(), time.perf_counter
    sent, taken, used = dict[int, float](), list[float](), 0.0
    by_number = {each.socket.fileno(): each for each in lanes}
    for number, lane in by_number.items():
        lane.socket.setblocking(False)
        lane.prepare()
        poll.register(number, select.EPOLLIN)
        sent[number] = clock()
        lane.send()
    begun = clock() + WARM_SECONDS
    while (now := clock()) < begun + seconds:
        if now < begun:
            taken.clear()
            used = time.process_time()
        for number, _ in poll.poll(1.0):
            lane = by_number[number]
            if lane.take():
                now = clock()
                taken.append(now - sent[number])
                sent[number] = now
                lane.send()
    cpu, lasted = time.process_time() - used, clock() - begun
    taken.sort()
    p50, p99 = (taken[int(len(taken) * share)] * 1_000 for share in (0.5, 0.99))
    return Load(len(taken) / lasted, p50, p99, cpu, len(taken))


def main(folder: str, port: str, connections: str, seconds: str) -> None:
    """Join, print `ready`, and measure after a line of input."""
    context = ssl.create_default_context(cafile=Path(folder) / "ca.pem")
    context.load_cert_chain(Path(folder) / "node.pem")
    lanes = [Lane(context, int(port), f"load-{each}") for each in range(int(connections))]
    settle(lanes)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(play(lanes, float(seconds))._asdict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
