"""Asks the plugin hosts of a worker for their metrics and loggers, on a thread of its own.

Every two seconds each host is asked for the metrics of its tasks, and every ten for those of their
clients of Kafka, which are many. Tasks hear their own figures, and the node gets all of them for
whoever scrapes it. A host that does not answer in time has none. Levels of loggers that were
changed for the node are passed on to the hosts by the same thread.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from .....events.model import Resource
from ..host import HostDied, HostSlow, PluginFailed, PluginHost
from ..host_names import owner_of, part_of
from .figures import CONNECT, Bean, TaskFigures, figures_of_tasks

LOGGER = logging.getLogger(__name__)
BEAT_S: Final = 2.0
_ASK_S: Final = 2.0
_CLIENTS_EVERY: Final = 5
"""How many beats the metrics of a host's clients count."""
_LOGGERS_EVERY: Final = 15
"""How many beats the names of a host's loggers count."""
_NEW_BEATS: Final = 3
"""For how many beats they are asked for each time once something begins to run in the host."""

Publish = Callable[[Sequence[Bean], Mapping[str, str]], None]
"""Takes the beans of all hosts of a worker, and the levels of their loggers."""


class MeteredRun(Protocol):
    """Something that runs in a host."""

    @property
    def in_host(self) -> Resource:
        """The connector or task, as its host calls it."""
        ...

    def note_figures(self, figures: TaskFigures) -> None:
        """Note what a task has done."""
        ...


class MeteredHost(NamedTuple):
    """A host at work, and what ran in it before it was asked."""

    host: PluginHost
    runs: Sequence[MeteredRun]


class Meters:
    """Looks at the hosts of a worker until it is closed."""

    def __init__(
        self,
        hosts: Callable[[], Sequence[MeteredHost]],
        publish: Publish,
        levels: Callable[[], Mapping[str, str]],
    ) -> None:
        """`hosts` are those at work, `levels` those that were set for the node, by logger."""
        self._hosts, self._publish, self._levels = hosts, publish, levels
        self._is_over = Event()
        self._thread: Thread | None = None
        self._told: WeakKeyDictionary[PluginHost, Mapping[str, str]] = WeakKeyDictionary()
        """The levels that each host was told last."""
        self._loggers: WeakKeyDictionary[PluginHost, Mapping[str, str]] = WeakKeyDictionary()
        """The loggers of each host, as of the last look at them."""
        self._clients: WeakKeyDictionary[PluginHost, Sequence[Bean]] = WeakKeyDictionary()
        """The metrics of each host's clients, as of the last look at them."""
        self._runs: WeakKeyDictionary[PluginHost, frozenset[Resource]] = WeakKeyDictionary()
        """What ran in each host at the last look."""
        self._new_until: WeakKeyDictionary[PluginHost, int] = WeakKeyDictionary()
        """Until which beat something is new in each host."""
        self._beats = 0
        self._has_published = False

    def start(self) -> None:
        """Begin to look, if it does not yet."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="plugin-meters", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(BEAT_S):
            try:
                self.look()
            except Exception:
                LOGGER.exception("the metrics of plugins are not known now")

    def look(self) -> None:
        """Ask all hosts once."""
        hosts, beans = self._hosts(), list[Bean]()
        levels, self._beats = self._levels(), self._beats + 1
        for host, runs in hosts:
            with suppress(HostDied, HostSlow, PluginFailed):
                self._tell(host, runs, levels)
                beans += self._read(host, runs)
        if hosts or self._has_published:
            loggers = {name: each for host, _ in hosts for name, each in self._known(host)}
            self._publish(beans, loggers)
            self._has_published = bool(hosts)

    def _read(self, host: PluginHost, runs: Sequence[MeteredRun]) -> Sequence[Bean]:
        """Return the metrics of a host, once its tasks have heard theirs."""
        is_whole = host not in self._clients or self._beats % _CLIENTS_EVERY == 0
        beans = [Bean(**each) for each in host.ask("metrics", _ASK_S, all=is_whole)]
        figures = figures_of_tasks(beans)
        for run in runs:
            if (own := figures.get(run.in_host)) is not None:
                run.note_figures(own)
        if is_whole:
            self._clients[host] = [each for each in beans if each.domain != CONNECT]
        of_connect = (_named(each) for each in beans if each.domain == CONNECT)
        return [*of_connect, *self._clients[host]]

    def _tell(
        self, host: PluginHost, runs: Sequence[MeteredRun], levels: Mapping[str, str]
    ) -> None:
        """Tell a host levels that it does not know yet, and look at its loggers."""
        is_news = self._told.get(host, {}) != levels
        if is_news:
            host.ask("levels", _ASK_S, levels=levels)
            self._told[host] = dict(levels)
        present = frozenset(each.in_host for each in runs)
        if not present <= self._runs.get(host, frozenset()):
            self._new_until[host] = self._beats + _NEW_BEATS
        self._runs[host] = present
        is_news |= self._beats < self._new_until.get(host, 0)
        if is_news or host not in self._loggers or self._beats % _LOGGERS_EVERY == 0:
            self._loggers[host] = host.ask("loggers", _ASK_S)

    def _known(self, host: PluginHost) -> Sequence[tuple[str, str]]:
        return [*self._loggers.get(host, {}).items()]


def _named(bean: Bean) -> Bean:
    """Return a bean with the connector that users know, and which part of that it is of."""
    name = bean.labels.get("connector", "")
    if not (part := part_of(name)):
        return bean
    return bean._replace(labels={**bean.labels, "connector": owner_of(name), "part": part})
