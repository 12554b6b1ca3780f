"""A load generator for a listener or broker, over raw sockets, in a separate process.

`python -m fairlead_tests.benchmarks.wire_load KIND PORT CONNECTIONS SECONDS` joins a member on each
connection, prints `ready`, and after a line of input sends prepared heartbeats, each as soon as the
last one is answered. Then it prints one JSON line. It can also fetch the topic from its beginning.

What it measures are heartbeats without news: an answer that is an error, or another than the first
one, ends it.
"""
# pyright: basic

import json
import select
import socket
import struct
import sys
import time
from typing import Any, NamedTuple

from fairlead.runtime.kafka.wire.served import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    SYNC_GROUP,
)
from fairlead_tests.kafka_listener.spoken import asking, told

HOST = "127.0.0.1"
CLASSIC, CONSUMER, FETCHES = "classic", "consumer", "fetches"
SUBSCRIPTION = "hex:00000000000100046c6f6164ffffffff"
"""A consumer's subscription to the topic, encoded."""
TOPIC = "load"
WARM_SECONDS = 1.0
FETCHED = 4 << 20
"""The size of a fetch response, in bytes."""
API_AND_VERSION = struct.Struct(">4xhh")
"""The beginning of a request, after its length."""


class Load(NamedTuple):
    """The result; times in milliseconds, CPU in seconds."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_seconds: float
    answered: int


def dial(port: int) -> socket.socket:
    """Return a new connection."""
    dialled = socket.create_connection((HOST, port))
    dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return dialled


class Member:
    """A member, and its connection, which it may share with others."""

    def __init__(self, connection: socket.socket, group_id: str, member_id: str) -> None:
        self.socket = connection
        self._group_id, self._member_id = group_id, member_id
        self._asked = (0, 0, b"")
        self.epoch = 0
        self._owned: list[Any] = []

    def frame(self, api: int, version: int, **fields: Any) -> bytes:
        """Return a request with its length."""
        ids = {"GroupId": self._group_id, "MemberId": self._member_id}
        frame = asking(api, version, fields | ids)
        return len(frame).to_bytes(4) + frame

    def send(self, api: int, version: int, **fields: Any) -> None:
        """Send a request."""
        self._asked = api, version, self.frame(api, version, **fields)
        self.socket.sendall(self._asked[2])

    def receive(self) -> Any:
        """Return the response; repeats the request while the coordinator is not available."""
        api, version, frame = self._asked
        with self.socket.makefile("rb") as stream:
            while True:
                answer = stream.read(int.from_bytes(stream.read(4)))
                found = told(api, version, answer)
                if found["ErrorCode"] not in {14, 15, 16}:
                    assert found["ErrorCode"] == 0, found
                    return found
                time.sleep(0.1)
                self.socket.sendall(frame)

    def find_coordinator(self) -> None:
        """Wait for a response."""
        self.send(FIND_COORDINATOR, 2, Key=self._group_id, KeyType=0)
        self.receive()

    def join_classic(self) -> bytes:
        """Join a group of its own, and return the heartbeat frame to repeat."""
        protocols = [{"Name": "range", "Metadata": SUBSCRIPTION}]
        said = {"SessionTimeoutMs": 60_000, "RebalanceTimeoutMs": 60_000, "Protocols": protocols}
        self.send(JOIN_GROUP, 3, ProtocolType="consumer", **said)
        joined = self.receive()
        self._member_id, generation = joined["MemberId"], joined["GenerationId"]
        shares = [{"MemberId": self._member_id, "Assignment": "hex:"}]
        self.send(SYNC_GROUP, 3, GenerationId=generation, Assignments=shares)
        self.receive()
        return self.frame(HEARTBEAT, 4, GenerationId=generation)

    def beat(self) -> None:
        """Send a heartbeat with the owned resources; a joining consumer adds its subscription."""
        said: dict[str, Any] = {"MemberEpoch": self.epoch, "TopicPartitions": self._owned}
        said |= {"RebalanceTimeoutMs": -1 if self.epoch else 60_000}
        said |= {} if self.epoch else {"SubscribedTopicNames": [TOPIC]}
        self.send(CONSUMER_GROUP_HEARTBEAT, 1, **said)

    def heed(self) -> bool:
        """Follow the response, and return whether it had news."""
        answer, before = self.receive(), (self.epoch, self._owned)
        self.epoch = answer["MemberEpoch"]
        if answer["Assignment"] is not None:
            self._owned = answer["Assignment"]["TopicPartitions"]
        return (self.epoch, self._owned) != before


def join_consumers(members: list[Member], group_id: str) -> list[bytes]:
    """Join all members to one group, wait until it is stable; return the frames to repeat.

    The target is computed beside the answers, so rounds without news do not tell that it is there.
    """
    stable = False
    while not stable:
        for each in members:
            each.beat()
        for each in members:
            each.heed()
        stable = is_stable(members[0].socket, group_id)
    same: dict[str, Any] = {"RebalanceTimeoutMs": -1, "TopicPartitions": None}
    return [
        each.frame(CONSUMER_GROUP_HEARTBEAT, 1, MemberEpoch=each.epoch, **same) for each in members
    ]


def is_stable(connection: socket.socket, group_id: str) -> bool:
    """Return whether all members of a group of consumers are at its epoch."""
    asked = {"GroupIds": [group_id], "IncludeAuthorizedOperations": False}
    frame = asking(CONSUMER_GROUP_DESCRIBE, 0, asked)
    connection.sendall(len(frame).to_bytes(4) + frame)
    with connection.makefile("rb") as stream:
        answer = stream.read(int.from_bytes(stream.read(4)))
    (group,) = told(CONSUMER_GROUP_DESCRIBE, 0, answer)["Groups"]
    return bool(group["GroupState"] == "Stable")


def hasten(frames: dict[socket.socket, bytes]) -> dict[socket.socket, bytes]:
    """Send two heartbeats at once, so that the next ones come too soon to be held.

    Return the answer to each, with its length.
    """
    answers = dict[socket.socket, bytes]()
    for each, frame in frames.items():
        each.sendall(2 * frame)
    for each, frame in frames.items():
        with each.makefile("rb") as stream:
            first, second = (stream.read(int.from_bytes(stream.read(4))) for _ in range(2))
        api, version = API_AND_VERSION.unpack_from(frame)
        answer = told(api, version, first)
        assert answer["ErrorCode"] == 0, answer
        assert first == second
        answers[each] = len(first).to_bytes(4) + first
    return answers


def play(frames: dict[socket.socket, bytes], warm_seconds: float, seconds: float) -> Load:
    """Send a frame on each connection again and again; the first seconds are a warm-up."""
    poll, clock = select.epoll(), time.perf_counter
    sent, taken = dict[int, float](), list[float]()
    answers = hasten(frames)
    playing = {each.fileno(): (each, frame, answers[each]) for each, frame in frames.items()}
    for number, (each, frame, _) in playing.items():
        poll.register(number, select.EPOLLIN)
        sent[number] = clock()
        each.send(frame)
    begun, used = clock() + warm_seconds, 0.0
    while (now := clock()) < begun + seconds:
        if now < begun:
            taken.clear()
            used = time.process_time()
        for number, _ in poll.poll(1.0):
            each, frame, answer = playing[number]
            assert each.recv(4_096) == answer
            now = clock()
            taken.append(now - sent[number])
            sent[number] = now
            each.send(frame)
    cpu, lasted = time.process_time() - used, clock() - begun
    taken.sort()
    p50, p99 = (taken[int(len(taken) * share)] * 1_000 for share in (0.5, 0.99))
    return Load(len(taken) / lasted, p50, p99, cpu, len(taken))


def fetch(sockets: list[socket.socket], seconds: float) -> Load:
    """Fetch endlessly on each connection; the rate is in bytes."""
    place = {"Partition": 0, "CurrentLeaderEpoch": -1, "FetchOffset": 0, "LogStartOffset": -1}
    places = [{**place, "LastFetchedEpoch": -1, "PartitionMaxBytes": FETCHED}]
    said: dict[str, Any] = {"ReplicaId": -1, "MaxWaitMs": 500, "MinBytes": 1, "MaxBytes": FETCHED}
    said |= {"IsolationLevel": 0, "SessionId": 0, "SessionEpoch": -1, "RackId": ""}
    said |= {"Topics": [{"Topic": TOPIC, "Partitions": places}], "ForgottenTopicsData": []}
    frame = asking(FETCH, 11, said)
    frame = len(frame).to_bytes(4) + frame
    poll, room, clock = select.epoll(), memoryview(bytearray(FETCHED)), time.perf_counter
    left = {each.fileno(): 0 for each in sockets}
    by_number = {each.fileno(): each for each in sockets}
    for number, each in by_number.items():
        poll.register(number, select.EPOLLIN)
        each.send(frame)
    begun, used, count = clock(), time.process_time(), 0
    while clock() < begun + seconds:
        for number, _ in poll.poll(1.0):
            each = by_number[number]
            if not left[number]:
                left[number] = int.from_bytes(each.recv(4, socket.MSG_WAITALL))
            size = each.recv_into(room, min(left[number], FETCHED))
            count += size
            left[number] -= size
            if not left[number]:
                each.send(frame)
    return Load(count / (clock() - begun), 0.0, 0.0, time.process_time() - used, count)


def main(kind: str, port: str, connections: str, seconds: str) -> None:
    """Join, print `ready`, and measure after a line of input."""
    sockets = [dial(int(port)) for _ in range(int(connections))]
    # A broker creates its topic of groups at the first FindCoordinator.
    Member(sockets[0], "load", "").find_coordinator()
    frames: list[bytes] = []
    if kind == CLASSIC:
        members = [Member(each, f"load-{number}", "") for number, each in enumerate(sockets)]
        frames = [each.join_classic() for each in members]
    elif kind == CONSUMER:
        members = [Member(each, "load", f"member-{number}") for number, each in enumerate(sockets)]
        frames = join_consumers(members, "load")
    print("ready", flush=True)
    sys.stdin.readline()
    if kind == FETCHES:
        played = fetch(sockets, float(seconds))
    else:
        played = play(dict(zip(sockets, frames, strict=True)), WARM_SECONDS, float(seconds))
    print(json.dumps(played._asdict()))


if __name__ == "__main__":
    main(*sys.argv[1:])
