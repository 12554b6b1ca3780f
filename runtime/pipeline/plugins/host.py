"""A JVM that runs plugins of Kafka Connect, and the conversation with it.

It is a process apart from Spark's: a plugin that ends its JVM, or fills its heap, ends no other
task. One socket connects the two. The JVM is given its address in a private folder, which is
removed once it has connected. Questions and answers are lines of JSON with numbers, in any order;
either side may ask. A question to the JVM has a deadline; when it is over, the JVM is asked at
which line of code its thread is, and goes on. News of the JVM has no answer. Bytes may follow a
line of news, and that of a question to the JVM.

A thread starts the JVM, which dies with it, and reads the answers until the JVM has ended.
"""

import json
import os
import re
import shlex
import shutil
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import IO, Any, Final

from ...processes.java import OLDEST, Java
from ...processes.logged import LoggedProcess, ProcessOutput
from .connector_logs import ConnectorLogs
from .options import HostOptions
from .setup import Installation

START_SECONDS: Final = 60.0
"""How long a JVM may take until it has loaded its plugins: it may have to scan them."""
_PATIENCE: Final = 0.25
"""Seconds between two looks whether a JVM that should connect has ended."""
_STOP_SECONDS: Final = 2.0
_WHERE_SECONDS: Final = 2.0
_SYSTEM_TRUST: Final = Path("/etc/ssl/certs/java/cacerts")
"""The certificates for Java of Debian and its like; a company's own authority is among them."""
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""The environment of a JVM; the node's own may have secrets."""
_THRIFTY: Final = {"MALLOC_ARENA_MAX": "2"}
"""Else glibc keeps memory for each thread that has once had some, which plugins have many of."""
_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    # From Java 24 on, Arrow's memory cannot be used otherwise.
    "--sun-misc-unsafe-memory-access=allow",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    # A JVM is unreliable once its heap was full: end it, and another one is started.
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-XX:+UseSerialGC",
    "-Dfile.encoding=UTF-8",
    "-Djava.awt.headless=true",
    # What a plugin's threads log has the name of the connector, too.
    "-Dlog4j2.isThreadContextMapInheritable=true",
)


OVERDUE: Final = "fairlead.plugins.Validation$Overdue"
_TOO_NEW: Final = "java.lang.UnsupportedClassVersionError"
_RELEASES: Final = re.compile(r"(\S+) has been compiled .*version (\d+)\.\d+\).* up to (\d+)\.\d+")
_BEFORE_JAVA: Final = 44
"""What the version in a class file is ahead of Java's release by."""
_EXIT: Final = re.compile(r"^System\.exit was called at .*$", re.MULTILINE)
_FULL: Final = "Terminating due to java.lang.OutOfMemoryError"


class HostDied(Exception):  # noqa: N818  # says what happened
    """A plugin host could not be started, or has ended; the text says why."""


class HostSlow(Exception):  # noqa: N818  # says what is the case
    """A question was not answered in time; the text says where the plugin's code is."""


class PluginFailed(Exception):  # noqa: N818  # says what happened
    """A plugin, or Connect itself, has refused a question or failed at it."""

    def __init__(self, kind: str, message: str, status: int | None) -> None:
        """`kind` is the Java class of the error, `status` that of Connect's HTTP answer, if any."""
        super().__init__(_plain(kind, message))
        self.kind = kind
        self.status = status

    @property
    def is_overdue(self) -> bool:
        """Whether the plugin has not come back in time: its thread stays where it is."""
        return self.kind == OVERDUE


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """The parameters of a plugin host."""

    installation: Installation
    java: Java
    log: Path
    options: HostOptions = field(default_factory=HostOptions)
    hide: Callable[[str], str] = field(default=str, repr=False)
    """Masks secrets in what the JVM prints."""

    def command(self, address: str) -> list[str]:
        """Return the command line; raises `HostDied` if the wrapper is not there."""
        paths = (self.installation.class_path, self.installation.host)
        jars = [":".join(map(str, each)) for each in paths]
        own = self.options
        options = [*_OPTIONS, f"-Xmx{own.heap}", *trust_options(own.truststore)]
        options.append(f"-Dlog4j2.configurationFile={self.installation.logging}")
        java = [str(self.java.command), *options, *shlex.split(own.java_options), "-cp", jars[0]]
        return [*self._wrapping(), *java, "fairlead.plugins.Boot", jars[1], address]

    def output(self) -> ProcessOutput:
        """Return where its output goes: to its log, and to those of its connectors."""
        logs = ConnectorLogs(self.log.parent)
        return ProcessOutput(self.log, self.hide, self.hide, logs.log_of)

    def _wrapping(self) -> list[str]:
        if not (parts := shlex.split(self.options.wrapper)):
            return []
        if program := shutil.which(parts[0]):
            return [program, *parts[1:]]
        raise HostDied(f"plugin.host.wrapper names {parts[0]}, which is not on PATH")


def trust_options(truststore: str) -> list[str]:
    """Return the options of a JVM that trusts the certificates of a file.

    If none is given it is the system's file for Java, where there is one: a Java from a Python
    package knows only public authorities.
    """
    path = truststore or (str(_SYSTEM_TRUST) if _SYSTEM_TRUST.is_file() else "")
    return [f"-Djavax.net.ssl.trustStore={path}"] if path else []


class HostListener:
    """Hears what a plugin host says by itself; this one does nothing.

    `hear` and `end` are called on the thread that reads, `answer` on one of its own.
    """

    def hear(self, news: str, about: Mapping[str, Any]) -> None:
        """Hear what has happened in the host."""

    def answer(self, question: str, about: Mapping[str, Any]) -> object:
        """Return the answer to a question of the host; None: it is not known."""

    def end(self, died: HostDied) -> None:
        """Hear of the host's end, before those who wait for answers; this is the last call."""


class OpenQuestion:
    """A question to a plugin host that has no answer yet."""

    def __init__(
        self, number: int, answer: "Future[Any]", where: Callable[[int, float], str]
    ) -> None:
        self._number = number
        self._answer = answer
        self._where = where

    def when_done(self, call: Callable[[], object]) -> None:
        """Call a function once there is an answer, from any thread."""
        self._answer.add_done_callback(lambda _: call())

    @property
    def is_done(self) -> bool:
        """Whether there is an answer."""
        return self._answer.done()

    def wait(self, seconds: float) -> None:
        """Wait for the answer, or for so long."""
        wait([self._answer], seconds)

    def where(self, seconds: float = _WHERE_SECONDS) -> str:
        """Return the line of code at which the host works on it; "" if that is not known."""
        return self._where(self._number, seconds)

    def result(self, seconds: float) -> Any:  # noqa: ANN401  # JSON
        """Return the answer; raises `HostSlow`, `HostDied`, and `PluginFailed`."""
        try:
            return self._answer.result(seconds)
        except TimeoutError:
            at = self.where()
            raise HostSlow(f"no answer for {seconds:g} s{at and f': it is at {at}'}") from None


class PluginHost:
    """A running plugin host; usable from any thread."""

    def __init__(
        self,
        launch: HostLaunch,
        properties: Mapping[str, str],
        listener: HostListener | None = None,
    ) -> None:
        """Start it with the properties of a Connect worker; waits until its plugins are loaded.

        Raises `HostDied`, and `PluginFailed` for properties that Connect refuses.
        """
        self._launch = launch
        self.plugins = frozenset(properties.get("plugin.path", "").split(",")) - {""}
        """The folders in which its plugins are."""
        self._listener = listener or HostListener()
        self._numbers = count(1)
        self._waiting: dict[int, Future[Any]] = {}
        """The questions without an answer yet, by their number."""
        self._lock = Lock()
        """Held while a line is sent, and while the JVM's end is noted."""
        self._process: LoggedProcess | None = None
        self._link: socket.socket | None = None
        started: Future[None] = Future()
        Thread(target=self._run, args=(started,), name="plugin-host", daemon=True).start()
        started.result()
        try:
            self.about: Mapping[str, str] = self.ask("begin", START_SECONDS, properties=properties)
            """The versions of Connect and of Java, as `connect` and `java`."""
        except (HostSlow, PluginFailed):
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id of the JVM, or of its wrapper."""
        return self._running.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return not self._running.ended.is_set()

    def ask(self, question: str, seconds: float, **given: object) -> Any:  # noqa: ANN401  # JSON
        """Return the answer to a question of the Java class `PluginHost`.

        Raises `HostSlow`, `HostDied`, and `PluginFailed`.
        """
        return self.put(question, **given).result(seconds)

    def put(self, question: str, data: bytes = b"", /, **given: object) -> OpenQuestion:
        """Put a question without waiting for its answer, with bytes if it needs any.

        Raises `HostDied`.
        """
        return OpenQuestion(*self._send(question, given, data), self._where)

    def kill(self, why: str) -> None:
        """End the JVM at once, for a reason that others are told."""
        self._running.kill(why)

    def close(self) -> None:
        """End the JVM."""
        if self._link is not None:
            with suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)
        self._running.stop(_STOP_SECONDS, "it was closed")

    @property
    def _running(self) -> LoggedProcess:
        if self._process is None:
            raise AssertionError("a host that has not started is not handed out")
        return self._process

    def _send(
        self, question: str, names: Mapping[str, object], data: bytes = b""
    ) -> tuple[int, "Future[Any]"]:
        number, answer = next(self._numbers), Future[Any]()
        with self._lock:
            if self._link is None:
                raise HostDied(self._explain(self._running.why))
            self._waiting[number] = answer
        size = {"bytes": len(data)} if data else {}
        self._say({"id": number, "ask": question, "with": names, **size}, data)
        return number, answer

    def _say(self, words: Mapping[str, object], data: bytes = b"") -> None:
        line = json.dumps(words).encode() + b"\n"
        with self._lock, suppress(OSError):  # its end is about to be seen by the reader
            if self._link is not None:
                self._link.sendall(line)
                self._link.sendall(data)

    def _where(self, number: int, seconds: float) -> str:
        with suppress(HostDied, TimeoutError, PluginFailed):
            _, answer = self._send("where", {"id": number})
            line: str = answer.result(seconds)
            return line
        return ""

    def _answer(self, question: Mapping[str, Any]) -> None:
        answered = self._listener.answer(question["ask"], question["with"])
        self._say({"id": question["id"], "answer": answered})

    # -- on the host's thread

    def _run(self, started: "Future[None]") -> None:
        try:
            link = self._connect()
        except (HostDied, OSError) as error:
            started.set_exception(error if isinstance(error, HostDied) else HostDied(str(error)))
            return
        with link, link.makefile("rb") as lines:
            self._link = link
            started.set_result(None)
            with suppress(OSError, ValueError, KeyError):  # bytes that are no answer end it, too
                self._read(lines)
            if not self._running.ended.wait(_STOP_SECONDS):
                self._running.kill("it closed its socket, and did not end")
                self._running.ended.wait()
            with self._lock:
                self._link = None
        died = HostDied(self._explain(self._running.why))
        self._listener.end(died)  # first: who waits for an answer asks for another host
        for answer in [*self._waiting.values()]:
            answer.set_exception(died)

    def _connect(self) -> socket.socket:
        """Start the JVM, and wait until it has connected."""
        with TemporaryDirectory(prefix="fairlead-") as folder, _listen(folder) as listener:
            command = self._launch.command(f"{folder}/link")
            process = self._process = LoggedProcess(
                command,
                _THRIFTY | {name: os.environ[name] for name in _KEPT if name in os.environ},
                self._launch.output(),
                "the plugin host",
                lambda _: None,
            )
            for _ in range(int(START_SECONDS / _PATIENCE)):
                with suppress(TimeoutError):
                    link, _ = listener.accept()
                    link.settimeout(None)
                    return link
                if process.ended.is_set():
                    raise HostDied(self._explain_start(process.why))
            process.kill(f"it did not connect for {START_SECONDS:g} s")
            raise HostDied(process.why)

    def _explain_start(self, why: str) -> str:
        if "UnsupportedClassVersionError" in why:
            return f"Java {self._launch.java.version} is too old, it needs {OLDEST}: {why}"
        return why

    def _explain(self, why: str) -> str:
        if _FULL in why:
            heap = self._launch.options.heap
            return f"its heap was full ({heap}): set plugin.host.heap to more; {why}"
        if called := _EXIT.search(why):
            return f"code of a plugin has ended its JVM: {called[0]}; {why}"
        return why

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            reply = json.loads(line)
            if "tell" in reply:
                about = reply["with"]
                if size := reply.get("bytes"):
                    about["data"] = lines.read(size)
                self._listener.hear(reply["tell"], about)
                continue
            if "ask" in reply:
                Thread(target=self._answer, args=(reply,), name="plugin-host-asks").start()
                continue
            answer = self._waiting.pop(reply["id"], None)
            if answer is None:
                continue  # nobody waits any longer
            if error := reply.get("error"):
                told = (error["kind"], error.get("message") or "", error.get("status"))
                answer.set_exception(PluginFailed(*told))
            else:
                answer.set_result(reply.get("answer"))


def _plain(kind: str, message: str) -> str:
    """Return an error of Java in words that help, where there are such words."""
    if kind == _TOO_NEW and (found := _RELEASES.search(message)):
        needed, here = (int(each) - _BEFORE_JAVA for each in found.group(2, 3))
        return (
            f"{found[1].replace('/', '.')} needs Java {needed}, and this JVM has Java {here}: set"
            " JAVA_HOME to a newer one, or take an older version of the plugin"
        )
    return message or kind


def _listen(folder: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder}/link")
    listener.listen(1)
    listener.settimeout(_PATIENCE)
    return listener
