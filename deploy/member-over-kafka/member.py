"""An example worker of a connect group over Kafka's wire protocol, with plain sockets.

    python member.py HOST PORT GROUP

It runs connectors of the class MemberConnector that demand the tag `lines`: lines of the files in
`member.input` go to files in `member.output`, each exactly once. On SIGTERM it leaves.
"""
# pyright: basic
# ruff: noqa: PLR2004  # bytes that tell kinds

import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

HEARTBEAT, ASK, FENCED, ASK_AGAIN = 10848, 10851, (25, 69, 110, 20002), (14, 15, 16, 111)
JOIN, LEAVE, MARGIN_S, REBALANCE_MS, BATCH_BYTES, WAIT_S = 0, -1, 1.0, 60000, 1 << 16, 5.0
SAID, SESSION, PROCESS, REASON = (1, 2, 4), 2, 4, 11  # tags of requests, of answers
ABLE = b'{"tags":["lines"],"tagged_only":true}'  # the work that it may be given
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}  # of msgpack
Key = tuple[str, int]  # a task by connector and number; -1 is the connector itself


class GivenToOthersError(Exception):
    """The group has fenced the member, or one of its tokens."""


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


def resources(owned: set[Key]) -> bytes:
    tasks = [pack("sAt", name, [pack("i", task)], {}) for name, task in sorted(owned) if task >= 0]
    return pack("AAt", [text(name) for name, task in sorted(owned) if task < 0], tasks, {})


def msgpack(value: Any) -> bytes:
    if isinstance(value, dict):
        return pack("BI", 0xDF, len(value)) + b"".join(msgpack(x) for p in value.items() for x in p)
    if isinstance(value, list | tuple):
        return pack("BI", 0xDD, len(value)) + b"".join(map(msgpack, value))
    if isinstance(value, str):
        return pack("BIx", 0xDB, len(value.encode()), value.encode())
    return b"\xc0" if value is None else pack("Bq", 0xD3, value)


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

    def text(self) -> bytes:
        return self.take(max(0, self.size() - 1))

    def tags(self) -> dict[int, "WireReader"]:
        return {self.size(): WireReader(self.take(self.size())) for _ in range(self.size())}

    def resources(self) -> set[Key]:
        found = {(self.text().decode(), -1) for _ in range(self.size() - 1)}
        for _ in range(self.size() - 1):
            name = self.text().decode()
            found |= {(name, self.number("i")) for _ in range(self.size() - 1)}
            self.tags()
        self.tags()
        return found

    def msgpack(self) -> Any:
        kind = self.number("B")
        if kind < 0x80 or kind in CONSTANTS or kind >= 0xE0:
            return CONSTANTS.get(kind, kind if kind < 0x80 else kind - 256)
        if 0xCC <= kind <= 0xD3:
            return self.number("BHIQbhiq"[kind - 0xCC])
        if 0xA0 <= kind < 0xDC:
            return self.take(kind & 31 if kind < 0xC0 else self.number("BHI"[kind - 0xD9])).decode()
        count = kind & 15 if kind < 0xA0 else self.number("HI"[kind & 1])
        if kind < 0x90 or kind >= 0xDE:
            return {self.msgpack(): self.msgpack() for _ in range(count)}
        return [self.msgpack() for _ in range(count)]


class Line:
    """A connection, on which requests are answered in their order."""

    def __init__(self, host: str, port: str) -> None:
        self.place, self.open = (host, int(port)), cast("Any", None)

    def send(self, key: int, body: bytes) -> None:
        self.open = self.open or socket.create_connection(self.place, WAIT_S)
        frame = pack("hhihxtx", key, 0, 0, 7, b"example", {}, body)
        self.open.sendall(pack("ix", len(frame), frame))

    def receive(self) -> WireReader:
        stream = self.open.makefile("rb")
        # It raises where the connection was cut. The number of the request and no tags come first.
        return WireReader(stream.read(struct.unpack(">i", stream.read(4))[0])[5:])


def sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


class Task:
    """Reads the lines of its share of the files; each batch becomes a file, once it counts."""

    def __init__(self, ask: Any, key: Key, work: dict[str, Any]) -> None:
        config, self.batch, self.offsets = work["connector_config"], 0, dict[str, Any]()
        self.ask, self.key, self.token, self.share = ask, key, work["token"], work["config"]
        self.source, self.sink = Path(config["member.input"]), Path(config["member.output"])
        self.staged = self.sink / ".staged" / f"{key[1]}@{key[0].replace('/', '_')}"
        self.staged.mkdir(parents=True, exist_ok=True)
        while waiting := self.read_offsets([])["unpublished"]:  # the last owner may have died
            for each in waiting:
                self.publish(each["commit_id"], each["manifest"]["staging"])
        for each in self.staged.iterdir():
            each.unlink(missing_ok=True)

    def read_offsets(self, files: list[str]) -> Any:
        about = {"connector": self.key[0], "task": self.key[1]}
        return self.ask("ReadOffsets", **about, partitions=[{"file": each} for each in files])

    def step(self) -> None:
        """Stage the next lines, commit them with their offsets, and publish them."""
        files = sorted(each.name for each in self.source.glob("*.txt"))
        share, of = int(self.share["share"]), int(self.share["of"])
        files = [each for each in files if sum(each.encode()) % of == share]
        if new := [each for each in files if each not in self.offsets]:
            self.offsets |= zip(new, self.read_offsets(new)["offsets"], strict=True)
        rows, advances = b"", list[Any]()
        for name in files:
            start = self.offsets[name] or {"bytes": 0}
            with (self.source / name).open("rb") as file:
                file.seek(start["bytes"])
                part = file.read(BATCH_BYTES - len(rows))
            if part := part[: part.rfind(b"\n") + 1]:
                end, rows = {"bytes": start["bytes"] + len(part)}, rows + part
                advances += [{"partition": {"file": name}, "start": self.offsets[name], "end": end}]
        if rows:
            self.commit(rows, advances)

    def commit(self, rows: bytes, advances: list[Any]) -> None:
        name = "-".join(map(str, (self.key[1], *self.token, self.batch))) + ".txt"
        (self.staged / name).write_bytes(rows)
        sync(self.staged / name)
        commit_id, count = [*self.key, self.token, self.batch], rows.count(b"\n")
        counts, place = {"rows": count, "bytes": len(rows), "files": 1}, {"root": str(self.sink)}
        commit = {"commit_id": commit_id, "advances": advances, "rows_in": count}
        commits = [commit | {"manifest": place | {"staging": name} | counts}]
        (verdict,) = self.ask("CommitOffsets", commits=commits)["verdicts"]
        if verdict["error"] != "NONE":
            raise GivenToOthersError(verdict["message"])
        self.offsets |= {each["partition"]["file"]: each["end"] for each in advances}
        self.batch += 1
        self.publish(commit_id, name)

    def publish(self, commit_id: list[Any], name: str) -> None:
        with suppress(FileNotFoundError):  # another owner has done it
            (self.staged / name).rename(self.sink / name)
        sync(self.sink)
        self.ask("CommitOffsets", commits=[], published=[commit_id])


class Worker:
    """A member of the group, and what it runs."""

    def __init__(self, host: str, port: str, group: str) -> None:
        self.beats, self.asks, self.group = Line(host, port), Line(host, port), group
        self.member_id, self.incarnation = str(uuid.uuid4()), str(uuid.uuid4())
        self.epoch, self.sequence, self.coordinator = JOIN, 0, -1
        self.sent_at, self.fence_at, self.interval_s, self.full = 0.0, 0.0, 3.0, True
        self.owned, self.running = set[Key](), dict[Key, Any]()  # token and state, and the task

    def ask(self, kind: str, **fields: Any) -> Any:
        """Return what the group answers, which is durable then; ask again until it does."""
        who = self.group, self.member_id, -1, kind
        while True:
            try:
                self.asks.send(ASK, pack("ssisst", *who, msgpack(fields), {}))
                _, error, message, _, found = self.asks.receive().read("ihsss")
            except (OSError, struct.error):
                self.asks.open, error, message = None, ASK_AGAIN[0], b"no answer"
            if not error:
                return WireReader(found).msgpack()
            if error not in ASK_AGAIN or time.monotonic() > self.fence_at:
                is_fenced = error in FENCED or error in ASK_AGAIN
                raise (GivenToOthersError if is_fenced else RuntimeError)(message.decode())
            time.sleep(0.2)

    def step(self) -> None:
        """Let each task do one batch."""
        for key, (_, task) in [*self.running.items()]:
            self.attempt(key, task.step) if task else None

    def attempt(self, key: Key, what: Any) -> None:
        """Do something for a resource, which is dropped if it is fenced, and FAILED if it fails."""
        try:
            what()
        except GivenToOthersError as error:
            say("fenced", key, error)
            self.running.pop(key, None)
        except Exception:  # noqa: BLE001  # the group is told which
            self.running[key] = self.running[key][0], None
            self.attempt(key, partial(self.report, key, "FAILED", traceback.format_exc()))

    def align(self) -> None:
        """Begin what is granted and does not run yet, or ran under another token or state."""
        for work in self.ask("ReadWork", resources=sorted(self.owned))["work"]:
            key, grant = tuple(work["resource"]), (work["token"], work["state"])
            if self.running.get(key, (None, None))[0] != grant:
                self.running[key] = grant, None
                self.attempt(key, partial(self.begin, key, work))

    def begin(self, key: Key, work: dict[str, Any]) -> None:
        token, state = self.running[key][0]
        if state == "RUNNING" and key[1] >= 0:
            self.running[key] = (token, state), Task(self.ask, key, work)
        elif state == "RUNNING":
            count = work["connector_config"].get("tasks.max", "1")
            configs = [{"share": str(each), "of": count} for each in range(int(count))]
            self.ask("PutTaskConfigs", connector=key[0], token=token, configs=configs)
        self.report(key, state)
        say("begins", key)

    def report(self, key: Key, state: str, reason: str = "") -> None:
        status = {"resource": key, "token": self.running[key][0][0], "state": state}
        more = {"reason": reason, "at_ms": time.time_ns() // 1_000_000}
        self.ask("ReportStatus", updates=[status | more])

    def beat(self) -> None:
        """Send a heartbeat: all of it at first, and after anything that went wrong."""
        self.sequence, self.sent_at = self.sequence + 1, time.monotonic()
        assignor = pack("shhbhst", "balanced", 0, 0, 0, 0, ABLE, {})
        told = [text(self.incarnation), *(pack("q", n) for n in (self.sequence, self.coordinator))]
        new = (REBALANCE_MS, None, [assignor]) if self.full else (-1, None, None)
        who = self.group, self.member_id, self.epoch, None
        more = dict(zip(SAID, told, strict=True))
        self.beats.send(HEARTBEAT, pack("ssisisAbRt", *who, *new, 1, self.owned, more))

    def follow(self) -> None:
        """Follow the answer to a heartbeat: end what is revoked, begin what is granted."""
        answer = self.beats.receive()
        _, error, message, epoch, interval_ms = answer.read("ihsii")
        owned = answer.read("bRhst")[1] if answer.number("b") > 0 else self.owned
        more = answer.tags()
        self.coordinator = more[PROCESS].number("q") if PROCESS in more else self.coordinator
        self.full = error != 0
        if error in FENCED:
            self.lose(message.decode())
        elif error and error not in ASK_AGAIN:
            sys.exit(f"refused with {error}: {message.decode()}")
        elif not error:
            self.epoch, self.interval_s = epoch, interval_ms / 1000
            self.fence_at = self.sent_at + more[SESSION].number("i") / 1000 - MARGIN_S
            if REASON in more:
                print("has nothing:", more[REASON].text().decode(), flush=True)
            self.end(self.owned - owned)
            self.owned = owned
            with suppress(GivenToOthersError):  # the next answer says more
                self.align()

    def end(self, keys: set[Key]) -> None:
        for key in sorted(keys & self.running.keys()):
            self.attempt(key, partial(self.report, key, "UNASSIGNED", "stopped"))
            self.running.pop(key, None)
            say("ends", key)

    def lose(self, why: str) -> None:
        """Stop everything at once, since others may have started it, and join again."""
        print("has lost everything:", why, flush=True)
        self.running, self.owned, self.epoch, self.full = {}, set(), JOIN, True


def say(what: str, key: Key, more: object = "") -> None:
    print(what, key[0] if key[1] < 0 else f"{key[0]}-{key[1]}", more, flush=True)


def main(host: str, port: str, group: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    worker = Worker(host, port, group)
    try:
        while True:
            try:
                worker.beat()
                while not select.select([worker.beats.open], [], [], 0.1)[0]:
                    worker.step()
                    if time.monotonic() > worker.sent_at + worker.interval_s + 1.5:
                        raise TimeoutError("the heartbeat was not answered")
                worker.step()
                worker.follow()
            except (OSError, struct.error) as error:  # it was cut, too
                worker.full, worker.beats.open = True, None
                if worker.owned and time.monotonic() >= worker.fence_at:
                    worker.lose(str(error))
                time.sleep(0.2)
    finally:
        worker.beats.open = worker.asks.open = None  # an answer may be under way
        worker.end(worker.owned)
        worker.owned, worker.epoch, worker.full = set(), LEAVE, False
        worker.beat()
        worker.beats.receive()


if __name__ == "__main__":
    main(*sys.argv[1:])
