"""Actors for the tests of the transport: each does one thing that it must handle."""

import ctypes
import logging
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.actors.transport.actor import Actor, Address, address_key


@dataclass(frozen=True, slots=True)
class Break:
    """Asks an actor to fail."""

    how: str = "broken"


@dataclass(frozen=True, slots=True)
class Tell:
    """Asks an actor to send something on."""

    to: Any
    message: object


@dataclass(frozen=True, slots=True)
class Create:
    """Asks an actor for a child."""

    name: str


@dataclass(frozen=True, slots=True)
class Greet:
    """Asks an actor to greet one of its children."""

    key: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Asks an actor to stop one of its children."""

    key: str


@dataclass(frozen=True, slots=True)
class Kill:
    """Asks an actor to end with an exit code."""

    code: int


class Echo(Actor):
    """Echoes messages, and counts how often it was asked to fail."""

    broken = 0

    def receive(self, message: object, sender: Address) -> None:
        match message:
            case Break(how):
                self.broken += 1
                raise ValueError(how)
            case Kill(code):
                self.die(code)
            case "how often broken":
                self.send(sender, self.broken)
            case "pid":
                self.send(sender, os.getpid())
            case "crash":
                ctypes.string_at(0)
            case "levels":
                loggers = (logging.root, logging.getLogger("a"), logging.getLogger("a.b"))
                self.send(sender, [each.getEffectiveLevel() for each in loggers])
            case _:
                self.send(sender, message)


class Silent(Echo):
    """Fails on every message, and never replies."""

    def failed(self, error: Exception, message: object, sender: Address | None) -> None:
        del message, sender
        raise RuntimeError("cannot even fail") from error


class Quarrel(Actor):
    """Ignores all messages but one question: how many it has got."""

    got = 0

    def receive(self, message: object, sender: Address) -> None:
        if message == "how many":
            self.send(sender, self.got)
            return
        self.got += 1
        if isinstance(message, Tell):
            self.send(message.to, message.message)
        else:
            raise TypeError("what is this?")


class Stillborn(Actor):
    """Exits before it handles a message."""

    def __init__(self) -> None:
        os._exit(3)


class Deaf(Actor):
    """Fails in its constructor."""

    def __init__(self) -> None:
        raise ValueError("no")


KINDS: dict[str, type[Actor]] = {"stillborn": Stillborn, "deaf": Deaf}


class Parent(Actor):
    """Has children, and a list of all its events."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.children: dict[str, Address] = {}

    def receive(self, message: object, sender: Address) -> None:
        match message:
            case "story":
                self.send(sender, list(self.story))
            case Create(name):
                child = self.create(KINDS.get(name, Echo), name)
                self.children[address_key(child)] = child
                self.story.append(f"created {address_key(child)}")
                self.send(sender, child if name not in KINDS else None)
            case Greet(key):
                self.send(self.children[key], "hello")
            case Stop(key):
                self.stop(self.children[key])
            case Tell(to, content):
                self.send(to, content)
            case "send nonsense":
                self.send(sender, threading.Lock())
            case _:
                self.story.append(f"{message} from {address_key(sender)}")

    def child_exited(self, child: Address) -> None:
        self.story.append(f"lost {address_key(child)}")

    def undelivered(self, message: object, to: Address) -> None:
        del to
        self.story.append(f"undelivered {type(message).__name__}")


class Timers(Actor):
    """Records the order of its timers."""

    def __init__(self) -> None:
        self.order: list[object] = []

    def receive(self, message: object, sender: Address) -> None:
        if message == "go":
            for number in range(6):
                self.wake_after(0.01, number)
            time.sleep(0.05)  # so that all are due together
        else:
            self.send(sender, self.order)

    def woken(self, payload: object) -> None:
        self.order.append(payload)


class Threads(Actor):
    """Posts to itself, and sends messages, from its own threads."""

    COUNT = 200

    def __init__(self) -> None:
        self.posted: list[object] = []

    def receive(self, message: object, sender: Address) -> None:
        match message:
            case "post":
                for thread in range(4):
                    threading.Thread(target=self.chatter, args=(thread,)).start()
            case "linger":
                threading.Thread(target=threading.Event().wait).start()
            case Tell(to, content):
                threading.Thread(target=self.send, args=(to, content)).start()
            case "posted":
                self.send(sender, self.posted)
            case _:
                assert sender == self.myAddress
                self.posted.append(message)

    def chatter(self, thread: int) -> None:
        for number in range(self.COUNT):
            self.post((thread, number))
            if number % 50 == 0:
                time.sleep(0.01)  # let the mailbox run dry


class Diary(Actor):
    """Records each call of `stopping`."""

    path = ""

    def receive(self, message: object, sender: Address) -> None:
        if isinstance(message, str):
            self.path = message
            self.send(sender, "noted")

    def stopping(self) -> None:
        with Path(self.path).open("a", encoding="utf-8") as diary:
            diary.write("stopping\n")


class Litterbug(Actor):
    """Leaves a file or a process behind."""

    def receive(self, message: object, sender: Address) -> None:
        if isinstance(message, str):
            Path(message).write_text("litter", encoding="utf-8")
        else:
            subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
        self.send(sender, "done")


class Late(Actor):
    """Answers each number after as many seconds."""

    def receive(self, message: object, sender: Address) -> None:
        self.wake_after(float(str(message)), Tell(sender, message))

    def woken(self, payload: object) -> None:
        if isinstance(payload, Tell):
            self.send(payload.to, payload.message)
