"""A member of a connect group over Kafka's wire protocol that computes, and runs nothing.

    python seat_over_kafka.py HOST PORT GROUP

It prints a line for each start and stop, and computes assignments on request; on SIGTERM it leaves.
"""
# pyright: basic

import signal
import socket
import struct
import sys
import time
import uuid
from functools import partial
from typing import Any

HEARTBEAT, PREPARE, INSTALL = 10848, 10849, 10850
COMPUTE_ASSIGNMENT, FENCED, ASK_AGAIN = 20000, (25, 69, 110), (14, 15, 16, 111)
JOIN, LEAVE, MARGIN_S, REBALANCE_MS, NOTHING = 0, -1, 1.0, 60000, b"\1\1\0"
INCARNATION, SEQUENCE, SESSION, PROCESS, CONFIGURED = 1, 2, 2, 4, 7  # tags of requests, of answers
Resources = set[tuple[str, int]]  # tasks by connector and number; -1 is the connector itself


def size(value: int) -> bytes:
    return bytes([value]) if value < 1 << 7 else bytes([value & 127 | 128]) + size(value >> 7)


def pack(form: str, *values: Any) -> bytes:
    """Encode values as in flexible versions: s text, A array, t tags, R resources."""
    pairs = zip(form, values, strict=True)
    return b"".join(WRITERS.get(each, partial(struct.pack, ">" + each))(it) for each, it in pairs)


def text(value: str | bytes | None) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return b"\0" if data is None else size(len(data) + 1) + data


def tags(fields: dict[int, bytes]) -> bytes:
    return size(len(fields)) + b"".join(size(a) + size(len(b)) + b for a, b in fields.items())


def resources(owned: Resources) -> bytes:
    tasks: dict[str, list[int]] = {}
    for name, task in sorted(each for each in owned if each[1] >= 0):
        tasks.setdefault(name, []).append(task)
    by_name = [pack("sAt", a, [pack("i", n) for n in b], {}) for a, b in tasks.items()]
    return pack("AAt", [text(name) for name, task in sorted(owned) if task < 0], by_name, {})


WRITERS: dict[str, Any] = {"s": text, "t": tags, "R": resources, "x": bytes}
WRITERS["A"] = lambda items: b"\0" if items is None else size(len(items) + 1) + b"".join(items)


class WireReader:
    """A response, which is decoded from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, form: str) -> list[Any]:
        readers: dict[str, Any] = {"s": self.text, "t": self.tags, "R": self.resources}
        return [readers[kind]() if kind in readers else self.number(kind) for kind in form]

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str) -> int:
        return int(struct.unpack(">" + kind, self.take(struct.calcsize(">" + kind)))[0])

    def size(self) -> int:
        byte = self.take(1)[0]
        return byte if byte < 1 << 7 else (byte & 127) + (self.size() << 7)

    def text(self) -> str:
        return self.take(max(0, self.size() - 1)).decode(errors="replace")

    def tags(self) -> dict[int, "WireReader"]:
        return {self.size(): WireReader(self.take(self.size())) for _ in range(self.size())}

    def resources(self) -> Resources:
        found = {(self.text(), -1) for _ in range(self.size() - 1)}
        for _ in range(self.size() - 1):
            name = self.text()
            found |= {(name, self.number("i")) for _ in range(self.size() - 1)}
            self.tags()
        self.tags()
        return found


class KafkaMember:
    """A seat in the group, and the process that sits there."""

    def __init__(self, host: str, port: int, group: str) -> None:
        self.place, self.group = (host, port), group
        self.member_id, self.incarnation = str(uuid.uuid4()), str(uuid.uuid4())
        self.epoch, self.sequence, self.coordinator = JOIN, 0, -1
        self.interval_s, self.fence_at, self.owned = 3.0, 0.0, Resources()
        self.connection: socket.socket | None = None

    def ask(self, key: int, body: bytes) -> WireReader:
        until = self.fence_at if self.owned else time.monotonic() + 10.0
        connect_s = max(0.1, min(5.0, until - time.monotonic()))
        self.connection = self.connection or socket.create_connection(self.place, connect_s)
        self.connection.settimeout(max(0.1, min(self.interval_s + 1.5, until - time.monotonic())))
        frame = pack("hhihxtx", key, 0, self.sequence, 7, b"example", {}, body)
        self.connection.sendall(pack("ix", len(frame), frame))
        stream = self.connection.makefile("rb")
        answer = WireReader(stream.read(int.from_bytes(stream.read(4))))
        answer.read("it")  # the number of the request: they are answered in their order
        return answer

    def beat(self, *, full: bool) -> bool:
        """Send a heartbeat and follow the response; return whether the next must be a full one."""
        self.sequence, sent_at = self.sequence + 1, time.monotonic()
        assignor = pack("shhbhst", "balanced", 0, 0, 0, 0, b"", {})
        said = {INCARNATION: text(self.incarnation), SEQUENCE: pack("q", self.sequence)}
        said[PROCESS] = pack("q", self.coordinator)
        new = (REBALANCE_MS, None, [assignor]) if full else (-1, None, None)
        who = self.group, self.member_id, self.epoch, None
        answer = self.ask(HEARTBEAT, pack("ssisisAbRt", *who, *new, 1, self.owned, said))
        throttle_ms, error, message, epoch, interval_ms = answer.read("ihsii")
        assigned = answer.read("bRhst")[1] if answer.number("b") > 0 else self.owned
        told = answer.tags()
        self.coordinator = told[PROCESS].number("q") if PROCESS in told else self.coordinator
        if error in (0, COMPUTE_ASSIGNMENT):
            self.epoch, self.interval_s = epoch, interval_ms / 1000
            session_ms = told[SESSION].number("i") if SESSION in told else 0
            self.fence_at = sent_at + session_ms / 1000 - MARGIN_S
            self.take(assigned)
            time.sleep(throttle_ms / 1000)
            return self.compute() if error else False
        if error in FENCED:
            self.lose(message)
        elif error not in ASK_AGAIN:
            sys.exit(f"refused with {error}: {message}")
        time.sleep(0.2)
        return True

    def take(self, assigned: Resources) -> None:
        """Stop resources that are revoked, then start new ones; the next heartbeat reports it."""
        for what, names in (("ends", self.owned - assigned), ("begins", assigned - self.owned)):
            for name, task in sorted(names):
                print(what, name if task < 0 else f"{name}-{task}", flush=True)
        self.owned = assigned

    def lose(self, why: str) -> None:
        """Stop everything at once, since others may have started it, and join again."""
        print("has lost everything:", why, flush=True)
        self.take(set())
        self.epoch = JOIN

    def compute(self) -> bool:
        """Compute a target, and install it; if that fails, a member is asked again."""
        seat = pack("ssi", self.group, self.member_id, self.epoch)
        answer = self.ask(PREPARE, seat + b"\0")
        _, error, _, group_epoch, _ = answer.read("ihsis")
        if members := [answer.read("sishbstRt") for _ in range(0 if error else answer.size() - 1)]:
            work = answer.tags().get(CONFIGURED, WireReader(NOTHING)).resources()
            shares = spread(work, {each[0]: each[7] for each in members}, self)
            told = [pack("sRist", *each, 0, b"", {}) for each in shares.items()]
            answer = self.ask(INSTALL, seat + pack("ibAt", group_epoch, 0, told, {}))
            print("computed", group_epoch, *answer.read("ihs")[1:], flush=True)
        return False


def spread(work: Resources, targets: dict[str, Resources], me: KafkaMember) -> dict[str, Resources]:
    """Return equal shares: assigned resources stay, and connectors go to other members."""
    shares: dict[str, Resources] = {each: set() for each in sorted(targets)}
    most = -(-len(work) // len(shares))
    for each in sorted(work):
        others = [one for one in shares if one != me.member_id or each[1] >= 0] or [*shares]
        kept = [one for one in others if each in targets[one] and len(shares[one]) < most]
        shares[min(kept or others, key=lambda one: len(shares[one]))].add(each)
    return shares


def main(host: str, port: str, group: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    member, full = KafkaMember(host, int(port), group), True
    try:
        while True:
            try:
                full = member.beat(full=full)
            except (OSError, struct.error) as error:  # it was cut, too
                full, member.connection = True, None
                if member.owned and time.monotonic() >= member.fence_at:
                    member.lose(str(error))
                time.sleep(0.2)
    finally:
        member.connection = None  # a heartbeat may be held there
        member.take(set())
        member.epoch = LEAVE
        member.beat(full=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
