"""The plugin hosts of a worker, in which Kafka's own `Worker` runs connectors and tasks.

One is started for the first of them, on a thread of its own, and ended some time after the last.
All share it but those that `isolation.py` gives one of their own. A host has the plugins that were
here when it started: what needs another one, or one as it is now, starts in a new host, and what
runs stays where it is until it starts again. A host that has ended is
replaced: the first time at once, then after pauses that grow. What was in it asks for a host again,
so the death of a host is noted before any of them hears of it. Its metrics are asked for by
`meters.py`.

Whatever the host says of a connector or a task is kept in its `HostedRun` (`runs.py`).
"""

import json
import logging
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread, Timer
from typing import Any, Final, Protocol

from .....actors.timing import Backoff
from .....events.commits import identity
from .....events.model import CONNECTOR, Resource, Token
from ....processes.java import JavaNotFound
from ...tasks.ledger import Ledger, LedgerUnavailable
from ..host import HostDied, HostListener, HostSlow, PluginFailed, PluginHost
from ..host_names import owner_of
from ..setup import NotSetUp
from .figures import Bean
from .isolation import Isolation
from .meters import MeteredHost, Meters, Publish
from .runs import STARTS, HandedBatch, HostedRun

LOGGER = logging.getLogger(__name__)
_AGAIN: Final = Backoff(1.0, 30.0)
"""The pauses before a host is started again, from its second death in a row."""
_PROVEN_S: Final = 60.0
"""A host that has lived so long does not count as one of a row."""
_LOOK_MS: Final = 1_000
"""How often a host that waits for Kafka says why."""
_LOOK_S: Final = 10.0
_LEDGER_LOOKS: Final = 100
_LEDGER_PAUSE_S: Final = 0.2


class WriteRights(Protocol):
    """The rights of a worker's tasks; each call waits for its actor, and may take seconds."""

    def may_write(self, resource: Resource, token: Token) -> bool:
        """Return whether a task may write under a token, as of now; False if that is not known."""
        ...

    def has_logged(self, resource: Resource) -> bool:
        """Return whether the log has all that was reported of a connector; False: not known."""
        ...

    def has_ended(self, resource: Resource) -> bool:
        """Return whether the log wants a resource no more, on any worker; False: not known."""
        ...


def _publish_nowhere(_beans: Sequence[Bean], _levels: Mapping[str, str]) -> None:
    """Drop metrics that nobody asks for."""


@dataclass(frozen=True, slots=True)
class HostServices:
    """The services of a worker that its plugin hosts need."""

    start: Callable[[HostListener], PluginHost]
    """Raises `HostDied`, `PluginFailed`, `NotSetUp`, `JavaNotFound`."""
    name: str
    """The worker's name, for Kafka."""
    idle_s: float
    """How long a host without work is kept."""
    learn: Callable[[str, Mapping[str, str]], None]
    """Called with a connector, the secrets that a host has looked up for it, and what to show
    instead of each."""
    require: Callable[[Mapping[str, str]], Set[str]]
    """Returns the folders of the plugins that a config names; it may take its time.

    Raises `PluginUnknown` for a class of a connector that is not here, or may not run.
    """
    ledger: Ledger
    """Where it is kept what topics tasks use, and what the offsets of sources are."""
    rights: WriteRights
    isolates: bool = False
    """Whether each connector has a host of its own, always."""
    grace_s: float = 5.0
    """How long a plugin may take to stop."""
    publish: Publish = _publish_nowhere
    """Called every few seconds with the metrics of all hosts, and the levels of their loggers."""
    levels: Callable[[], Mapping[str, str]] = dict
    """Returns the levels of loggers that were set for the node."""


class _HostLife(HostListener):
    """One host from its start to its end, and what runs in it."""

    def __init__(
        self,
        key: str,
        services: HostServices,
        pause_s: float,
        last: str,
        on_end: Callable[["_HostLife"], None],
    ) -> None:
        """Start it after a pause; `last` is why there was no host any more.

        `key` is its place in `TaskHosts`. `on_end` is called once it has ended, before its runs
        hear of that.
        """
        self.key = key
        self._on_end = on_end
        self.runs: dict[Resource, HostedRun] = {}
        self.ended: Exception | None = None
        self.since = time.monotonic() + pause_s
        self._services = services
        self._lock = Lock()
        """Held while `runs` changes, and while its end is noted."""
        self._host: PluginHost | None = None
        when = f" in {pause_s:g} s" if pause_s else ""
        self._waits: str | None = f"{STARTS}{when}; {last}" if last else STARTS
        self._plugins: frozenset[str] | None = None
        """The folders of its plugins; None: it has not started."""
        self._is_for_kafka = False
        self._closed = Event()
        self._kafka_is_wanted = Event()
        """Set once there is a run that needs Kafka, or the host has ended."""
        self._culprit: str | None = None
        """The connector that has ended it, since it did not stop, and is gone from `runs`."""
        Thread(target=self._open, args=(pause_s,), name="plugin-host-open", daemon=True).start()

    def has(self, plugins: Set[str]) -> bool:
        """Return whether it has the plugins in some folders, or will have them."""
        return self._plugins is None or plugins <= self._plugins

    def add(self, run: HostedRun) -> None:
        """Tell a run of this host from now on."""
        with self._lock:
            self.runs[run.in_host] = run
            self._open_run(run)
            if run.needs_kafka:
                self._kafka_is_wanted.set()
            if self.ended is not None:
                run.end(self.ended)

    def remove(self, run: HostedRun) -> None:
        """Tell a run nothing more."""
        with self._lock:
            if self.runs.get(run.in_host) is run:
                del self.runs[run.in_host]
            if run.has_ended_host:
                self._culprit = run.resource.connector

    def close(self) -> None:
        """End the host."""
        self._closed.set()
        self._kafka_is_wanted.set()
        if (host := self._host) is not None:
            host.close()

    # -- by the host's threads

    def hear(self, news: str, about: Mapping[str, Any]) -> None:
        """Pass on what has happened in the host."""
        if news == "reload":
            self._note_outdated(about["connector"])
            return
        run = self._find(about)
        if run is None:
            return
        if news == "state":
            run.note(about["state"], about["trace"] or "")
        elif news == "reconfigure":
            run.note_reconfiguration()
        elif news == "topic":
            run.note_topic(about["topic"])
        elif news == "batch":
            run.note_batch(HandedBatch.read(about))
        elif news in {"put", "counts", "errant", "paused"}:
            run.note_fed(news, about)

    def answer(self, question: str, about: Mapping[str, Any]) -> object:
        """Say whether a task may still write, or that secrets are masked from now on."""
        if question == "mask":
            self._services.learn(owner_of(about["connector"]), about["shown"])
            return True
        if question == "offsets":
            return self._read_offsets(about["partitions"])
        run = self._find(about) if question == "may write" else None
        if run is None:
            return False
        run.was_refused = not run.may_write()
        return not run.was_refused

    def _read_offsets(self, partitions: Sequence[str]) -> list[str | None] | None:
        """Return the logged offsets of partitions, as JSON; None: they cannot be read now."""
        keys = [json.loads(each) for each in partitions]
        for _ in range(_LEDGER_LOOKS):
            try:
                known = {each: self._services.ledger.offsets(each) for each, _ in keys}
            except LedgerUnavailable:
                time.sleep(_LEDGER_PAUSE_S)
                continue
            found = [known[connector].get(identity(each or {})) for connector, each in keys]
            return [None if each is None else json.dumps(each) for each in found]
        return None

    def end(self, died: HostDied) -> None:
        """Tell all runs that the host is gone."""
        self._end(died)

    def _note_outdated(self, connector: str) -> None:
        with self._lock:
            for run in self.runs.values():
                if run.resource.connector == owner_of(connector):
                    run.note_outdated()

    def _find(self, about: Mapping[str, Any]) -> HostedRun | None:
        with self._lock:
            task = about.get("task")
            return self.runs.get(Resource(about["connector"], CONNECTOR if task is None else task))

    def _open(self, pause_s: float) -> None:
        if self._closed.wait(pause_s):
            self._end(HostDied("nothing needs it any more"))
            return
        try:
            host = self._services.start(self)
            self._plugins = host.plugins
            self._progress(host, self._waits, is_for_kafka=False)
            self._kafka_is_wanted.wait()
            while why := self._ask_whether_works(host):
                self._progress(host, why, is_for_kafka=True)
        except (HostDied, HostSlow, PluginFailed, NotSetUp, JavaNotFound) as error:
            self._end(error)
            return
        self._progress(host, None, is_for_kafka=False)
        if self._closed.is_set():
            host.close()

    def _ask_whether_works(self, host: PluginHost) -> str:
        """Return what a host waits for; it ends what former runs of its tasks have left behind."""
        with self._lock:
            tasks = [[*each] for each, run in self.runs.items() if each.is_task and run.needs_kafka]
        asked = {"name": self._services.name, "ms": _LOOK_MS, "tasks": tasks}
        return str(host.ask("work", _LOOK_S, **asked))

    def _progress(self, host: PluginHost, waits: str | None, *, is_for_kafka: bool) -> None:
        with self._lock:
            self._host, self._waits, self._is_for_kafka = host, waits, is_for_kafka
            for run in self.runs.values():
                self._open_run(run)

    def _open_run(self, run: HostedRun) -> None:
        waits = self._waits if run.needs_kafka or self._host is None else None
        run.open(self._host, waits, is_for_kafka=self._is_for_kafka)

    def _end(self, error: Exception) -> None:
        with self._lock:
            if self.ended is not None:
                return
            self.ended = error
            self._kafka_is_wanted.set()
            runs = [*self.runs.values()]
        self._on_end(self)
        for run in runs:
            run.end(error)

    @property
    def metered(self) -> MeteredHost | None:
        """The host with its runs, if it has started and anything runs in it."""
        with self._lock:
            if self._host is None or self.ended is not None:
                return None
            return MeteredHost(self._host, [*self.runs.values()]) if self.runs else None

    @property
    def connectors(self) -> frozenset[str]:
        """The connectors that have something in it."""
        with self._lock:
            gone = {self._culprit} if self._culprit else set[str]()
            owners = (each.resource.connector for each in self.runs.values())
            return frozenset(gone.union(owners))

    @property
    def culprit(self) -> str | None:
        """The connector whose code has ended it; None: that is not known, or nobody's."""
        with self._lock:
            if self._culprit:
                return self._culprit
            runs = [*self.runs.values()]
        for run in runs:
            own = re.escape(run.in_host.connector)
            threads = rf" by (task-thread-{own}-\d+|(connector|question)-thread-{own})(?=$|;)"
            if run.has_ended_host or re.search(threads, str(self.ended), re.MULTILINE):
                return run.resource.connector
        return None


class TaskHosts:
    """The plugin hosts of a worker; usable from any thread."""

    def __init__(self, services: HostServices) -> None:
        """Start nothing yet."""
        self._services = services
        self._lock = Lock()
        """Held while a host is chosen or found to be idle, and while a death is noted."""
        self._lives: dict[str, _HostLife] = {}
        """The hosts, or those that have ended last, by their key in `Isolation`."""
        self._former: set[_HostLife] = set()
        """Those that others have taken the place of, since plugins had changed."""
        self._isolation = Isolation(always=services.isolates)
        self._deaths: dict[str, int] = {}
        """How many hosts in a row have ended soon after their start, by that key."""
        self._meters = Meters(self._metered, services.publish, services.levels)

    @property
    def rights(self) -> WriteRights:
        """The rights of the worker's tasks."""
        return self._services.rights

    def require(self, config: Mapping[str, str]) -> Set[str]:
        """Return the folders of the plugins that a config names; raises `PluginUnknown`."""
        return self._services.require(config)

    @property
    def ledger(self) -> Ledger:
        """Where it is kept what topics tasks use."""
        return self._services.ledger

    @contextmanager
    def joined(
        self,
        resource: Resource,
        may_write: Callable[[], bool],
        plugins: Set[str],
        *,
        needs_kafka: bool = True,
        part: str = "",
    ) -> Generator[HostedRun]:
        """Keep a host with the plugins in some folders for a connector or a task, or a part of it.

        One is started if there is none.
        """
        run = HostedRun(resource, may_write, needs_kafka, self._services.grace_s, part)
        with self._lock:
            life = self._choose(resource.connector, plugins)
            life.add(run)
            self._meters.start()
        try:
            yield run
        finally:
            with self._lock:
                life.remove(run)
                if not life.runs:
                    self._end_later(life)

    def close(self) -> None:
        """End the hosts, with all that runs in them."""
        self._meters.close()
        with self._lock:
            lives = [*self._lives.values(), *self._former]
            self._lives.clear()
            self._former.clear()
        for life in lives:
            life.close()

    def _metered(self) -> Sequence[MeteredHost]:
        with self._lock:
            lives = [*self._lives.values(), *self._former]
        return [each for each in (life.metered for life in lives) if each is not None]

    def _choose(self, connector: str, plugins: Set[str]) -> _HostLife:
        key = self._isolation.host_of(connector)
        life = self._lives.get(key)
        if life is not None and life.ended is None:
            if life.has(plugins):
                return life
            LOGGER.warning("plugins have changed: %s starts in a new plugin host", connector)
            self._former.add(life)
            if not life.runs:
                self._end_later(life)
        pause_s, why = 0.0, ""
        if life is not None and life.ended is not None:
            lived = time.monotonic() - life.since > _PROVEN_S
            deaths = self._deaths[key] = 1 if lived else self._deaths.get(key, 0) + 1
            pause_s = _AGAIN.pause(deaths - 1) if deaths > 1 else 0.0
            LOGGER.warning("starting the plugin host again: %s", life.ended)
            why = str(life.ended).partition("\n")[0]
        self._lives[key] = _HostLife(key, self._services, pause_s, why, self._note_death)
        return self._lives[key]

    def _note_death(self, life: _HostLife) -> None:
        """Count the end of a host that something was in."""
        connectors, culprit = life.connectors, life.culprit
        if not connectors:
            return
        with self._lock:
            self._isolation.add_death(life.key, connectors, culprit)
            alone = {each for each in connectors if self._isolation.host_of(each) != life.key}
            if alone:
                self._deaths.pop(life.key, None)  # those that stay have not ended it
        for each in sorted(alone):
            LOGGER.warning("%s has a plugin host of its own from now on: %s", each, life.ended)

    def _end_later(self, life: _HostLife) -> None:
        idle_s = 0.0 if life in self._former else self._services.idle_s
        timer = Timer(idle_s, self._end_if_idle, (life,))
        timer.daemon = True
        timer.start()

    def _end_if_idle(self, life: _HostLife) -> None:
        with self._lock:
            if life.runs:
                return
            if life in self._former:
                self._former.remove(life)
            elif self._lives.get(life.key) is life:
                del self._lives[life.key]
            else:
                return
        with suppress(HostDied):
            life.close()
