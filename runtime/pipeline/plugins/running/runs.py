"""The news of a plugin host about one connector or one task.

The host's threads note it here, and the thread that runs the connector or the task looks. An event
wakes that thread. It waits for nothing else, so it can always be asked to end.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from threading import Event
from typing import Any, Final, NamedTuple, Self

from .....events.commits import Document
from .....events.model import Resource, RunState
from ..host import HostDied, OpenQuestion, PluginHost
from ..host_names import name_in_host
from .figures import TaskFigures

STARTS: Final = "it starts"
"""What a host that has just been asked for waits for."""
STOP_SLACK_S: Final = 1.5
"""How much longer than its grace period a stop may take: Connect gives clients up after that."""
_WHERE_S: Final = 0.2


class HandedBatch(NamedTuple):
    """The records that a task of a source hands over instead of writing them to Kafka."""

    number: int
    """From 1 on, in the order of its batches."""
    offsets: Sequence[tuple[Document, Document | None]]
    """The partitions that it advances, each with its new offset; None: it has none any more."""
    tables: Sequence[memoryview]
    """Streams of Arrow, one for each topic and schema."""
    held: int = 0
    """About how many bytes of records the host holds for it."""
    wants_places: bool = False
    """Whether the plugin hears where its records are written."""

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Self:
        """Return a batch that a host has told; a key of an offset is `[connector, partition]`."""
        data, ends = memoryview(about.get("data", b"")), [0, *accumulate(about["sizes"])]
        offsets = [  # to a plugin a partition of null is one, like any other
            (json.loads(partition)[1] or {}, None if offset is None else json.loads(offset))
            for partition, offset in about["offsets"]
        ]
        tables = [data[start:end] for start, end in pairwise(ends)]
        return cls(about["number"], offsets, tables, about["held"], about["places"])


class ErrantRecord(NamedTuple):
    """A record that a task of a sink could not write, and that its config tolerates."""

    batch: int
    """The number of its batch."""
    place: tuple[str, int, int]
    """Its topic, partition and offset."""
    reason: str
    context: Mapping[str, str]
    """What Connect says of it in the headers of a dead letter, without their prefix."""
    row: memoryview
    """Its row as a stream of Arrow; empty: it is not known."""

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> Self:
        """Return a record that a host has told."""
        place = about["topic"], about["partition"], about["offset"]
        context = {
            "stage": about["stage"],
            "class.name": about["class"],
            "exception.class.name": about["error"],
            "exception.message": about["message"],
            "exception.stacktrace": about["trace"],
        }
        known = {name: each for name, each in context.items() if each is not None}
        reason = about["message"] or about["error"]
        return cls(about["number"], place, reason, known, memoryview(about.get("data", b"")))


@dataclass(slots=True)
class FeedNews:
    """How far a task of a sink is with the batches that it was given, by their numbers."""

    put: int = 0
    """The last one whose records were all put to the plugin, but for those of paused partitions."""
    counts: int = 0
    """The last one that the plugin has agreed to, as all before it."""
    errant: deque[ErrantRecord] = field(default_factory=deque[ErrantRecord])
    """The records that it could not write, until somebody takes them."""
    paused: frozenset[tuple[str, int]] = frozenset()
    """The partitions that the plugin has paused, each with its topic."""


@dataclass(eq=False, slots=True)
class HostedRun:
    """One connector or task, as its host tells of it; any thread may look."""

    resource: Resource
    may_write: Callable[[], bool]
    """Asked before a task gets a transactional producer."""
    needs_kafka: bool = True
    """Whether it writes to Kafka or reads it, as in Connect."""
    grace_s: float = 5.0
    """How long its plugin may take to stop, as its host has it."""
    part: str = ""
    """Which part of its connector it is, where that has two plugins."""
    was_refused: bool = False
    """Whether a task has been told that it may not write."""
    changed: Event = field(default_factory=Event)
    """Set whenever there is something new below."""
    waits: str | None = STARTS
    """What the host waits for before it works; None: it works."""
    is_for_kafka: bool = False
    """Whether that is a broker."""
    state: str = ""
    """The state that was told last, in Connect's words."""
    state_since: float = 0.0
    """Since when, on the monotonic clock."""
    trace: str = ""
    """The stack trace of a failure."""
    wants_reconfiguration: bool = False
    """Whether a connector wants to split its work again."""
    figures: TaskFigures | None = None
    """What a task has done so far; None: it is not known yet."""
    is_outdated: bool = False
    """Whether a value that its config refers to is no longer good."""
    batch: HandedBatch | None = None
    """What a task has handed over, until it is told that this is committed."""
    fed: FeedNews = field(default_factory=FeedNews)
    """What a task has done with the batches that it was given."""
    ended: Exception | None = None
    """Why there is no host any more."""
    has_ended_host: bool = False
    """Whether the host had to be ended because of this run."""
    _topics: deque[str] = field(default_factory=deque[str])
    """The topics that a task uses, until somebody takes them."""
    _host: PluginHost | None = None
    _when_changed: Callable[[], object] = lambda: None

    @property
    def plugins(self) -> Set[str]:
        """The folders of the plugins that the host has."""
        return self._host.plugins if self._host is not None else frozenset()

    def put(self, question: str, data: bytes = b"", /, **given: object) -> OpenQuestion:
        """Put a question to the host, whose answer sets `changed`; raises `HostDied`."""
        if self._host is None:
            raise HostDied("the plugin host has not started")
        batches = {} if self.needs_kafka else {"batches": True}
        sent = self._host.put(question, data, **given, **batches)
        sent.when_done(self._tell)
        return sent

    def shares_host(self, other: "HostedRun") -> bool:
        """Return whether this and another run are in one host."""
        return other.is_in(self._host)

    def is_in(self, host: PluginHost | None) -> bool:
        """Return whether that is its host."""
        return self._host is host

    @property
    def in_host(self) -> Resource:
        """Its name in its host."""
        return self.resource._replace(connector=name_in_host(self.resource.connector, self.part))

    @property
    def place(self) -> Mapping[str, str | int]:
        """Its name in questions to the host."""
        own = {"connector": self.in_host.connector}
        return {**own, "task": self.resource.task} if self.resource.is_task else own

    @property
    def has_failed(self) -> bool:
        """Whether it was told that it has FAILED."""
        return self.state == RunState.FAILED.value

    def when_changed(self, call: Callable[[], object]) -> None:
        """Call a function after each change, on the thread that notes it."""
        self._when_changed = call

    def _tell(self) -> None:
        self.changed.set()
        self._when_changed()

    def take_topics(self) -> set[str]:
        """Return the topics that were noted since the last call."""
        return {self._topics.popleft() for _ in range(len(self._topics))}

    def replace_host(self, why: str) -> None:
        """End the host of this and all other runs, since code of a plugin hangs in it."""
        if self._host is not None:
            self.has_ended_host = True
            self._host.kill(why)

    def stop(
        self, started: OpenQuestion, question: str, wait: Callable[[OpenQuestion], object]
    ) -> None:
        """Stop what was `started`; the host is ended if code of the plugin goes on in it.

        A stop does not find what is still being made, and that would go on. So it is put again once
        the start has an answer, unless it had one before. `wait` waits for an answer as long as a
        stop may take. Raises `HostDied` if the host has ended meanwhile.
        """
        is_made = started.is_done
        self._stop(question, wait)
        if is_made or self.has_ended_host:
            return
        begun = time.monotonic()
        wait(started)
        if not started.is_done:
            self._end_stop(begun, started.where(_WHERE_S))
        self._stop(question, wait)

    def _stop(self, question: str, wait: Callable[[OpenQuestion], object]) -> None:
        begun, stopping = time.monotonic(), self.put(question, **self.place)
        wait(stopping)
        line = stopping.result(0) if stopping.is_done else stopping.where(_WHERE_S)
        if line or not stopping.is_done:
            self._end_stop(begun, line)

    def _end_stop(self, begun: float, line: str) -> None:
        what = f"{self.resource} did not end within {time.monotonic() - begun:.1f} s"
        self.replace_host(f"{what}: its code is at {line or 'an unknown place'}")

    # -- by the host's threads

    def open(self, host: PluginHost | None, waits: str | None, *, is_for_kafka: bool) -> None:
        """Note how far the host is."""
        self._host, self.is_for_kafka, self.waits = host, is_for_kafka, waits
        self._tell()

    def note(self, state: str, trace: str) -> None:
        """Note a state."""
        self.state_since, self.trace, self.state = time.monotonic(), trace, state
        self._tell()

    def note_reconfiguration(self) -> None:
        """Note that the connector wants to split its work again."""
        self.wants_reconfiguration = True
        self._tell()

    def note_outdated(self) -> None:
        """Note that a value which its config refers to is no longer good."""
        self.is_outdated = True
        self._tell()

    def note_batch(self, batch: HandedBatch) -> None:
        """Note that a task has handed over a batch."""
        self.batch = batch
        self._tell()

    def note_fed(self, news: str, about: Mapping[str, Any]) -> None:
        """Note what a task has done with the batches that it was given."""
        if news == "put":
            self.fed.put = about["number"]
        elif news == "counts":
            self.fed.counts = about["number"]
        elif news == "paused":
            self.fed.paused = frozenset((topic, number) for topic, number in about["places"])
        else:
            self.fed.errant.append(ErrantRecord.read(about))
        self._tell()

    def note_topic(self, topic: str) -> None:
        """Note that a task uses a topic."""
        self._topics.append(topic)
        self._tell()

    def note_figures(self, figures: TaskFigures) -> None:
        """Note what a task has done so far."""
        if figures != self.figures:
            self.figures = figures
            self._tell()

    def end(self, error: Exception) -> None:
        """Note that there is no host any more."""
        self.ended = error
        self._tell()
