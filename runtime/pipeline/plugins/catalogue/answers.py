"""Answers about Connect's plugins: which there are, their keys, whether a config is valid.

A list is made from a catalogue that may be some seconds old; for a question to a plugin it is read
again: to see that no plugin has changed costs little. A plugin host is started by the first
question that needs one, serves any number at once, and ends when it has been idle for a while.
Another one replaces it once the catalogue names other plugins, or code of a plugin does not come
back; it ends when the questions that it has are answered. A plugin that fails is asked once more if
its jars were replaced meanwhile: the classes of the former host were halves of two plugins.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Any, Final

from ..host import HostDied, HostSlow, PluginFailed, PluginHost
from .catalogue import Catalogue, ConnectPlugin
from .settings import PluginSettings

KEYS_SECONDS: Final = 30.0
KAFKA_SECONDS: Final = 15.0
"""How long a broker of Kafka may take to answer at all."""
VALIDATE_SECONDS: Final = 90.0
"""How long a plugin may take to validate a config, or to judge offsets, as in Connect."""
_NAME: Final = "rest"
"""What the clients of Kafka are called that read and change offsets."""
_SLACK: Final = 5.0
"""How much longer the host is waited for: it tells what a plugin does when its time is over."""
_FRESH_SECONDS: Final = 3.0
"""How long a catalogue is taken as it was, for lists."""


class KafkaAway(Exception):  # noqa: N818  # says what is the case
    """No broker of Kafka has answered; the text says why."""


@dataclass(slots=True)
class _Serving:
    """A plugin host, and how many questions it has now."""

    host: PluginHost
    paths: Sequence[str]
    """The folders whose plugins it has."""
    questions: int = 0


class PluginAnswers:
    """The plugins of a node, for questions about them; usable from any thread."""

    def __init__(
        self,
        settings: PluginSettings,
        read_catalogue: Callable[[], Catalogue],
        start: Callable[[Sequence[str]], PluginHost],
        idle_seconds: float,
    ) -> None:
        """Start nothing yet; `start` starts a host with the plugins of folders."""
        self._settings = settings
        self._read_catalogue = read_catalogue
        self._start = start
        self._idle_seconds = idle_seconds
        self._reading = Lock()
        """Held while the catalogue is read, which may scan plugins."""
        self._catalogue = Catalogue((), (), ())
        self._read_at = float("-inf")
        """On the monotonic clock."""
        self._lock = Lock()
        """Held while a host is chosen, started or ended."""
        self._serving: _Serving | None = None
        self._idle: Timer | None = None

    def catalogue(self, fresh_seconds: float = _FRESH_SECONDS) -> Catalogue:
        """Return the plugins that can be used now; new ones are scanned first."""
        with self._reading:
            if time.monotonic() - self._read_at > fresh_seconds:
                self._catalogue = self._read_catalogue()
                self._read_at = time.monotonic()
            return self._catalogue

    def listed(self) -> list[ConnectPlugin]:
        """Return the plugins that configs may name."""
        return [each for each in self.catalogue().plugins if self._settings.allows(each.class_name)]

    def find(self, name: str) -> ConnectPlugin | None:
        """Return the plugin of a class or an alias; any of its versions."""
        return next((each for each in self.listed() if each.answers_to(name)), None)

    def refusal(self, name: str) -> str:
        """Return why configs may not name a class or an alias that is here; "" if they may."""
        is_meant = (each for each in self.catalogue().plugins if each.answers_to(name))
        found = next(is_meant, None)
        if found is None or self._settings.allows(found.class_name):
            return ""
        return self._settings.refusal(found.class_name)

    def keys(self, name: str, version: str) -> list[dict[str, Any]]:
        """Return the definitions of a plugin's keys, as Connect's REST does.

        Raises `HostDied`, `HostSlow`, `PluginFailed`.
        """
        keys: list[dict[str, Any]] = self._ask(
            lambda host: host.ask("keys", KEYS_SECONDS, plugin=name, version=version)
        )
        return keys

    def validate(
        self,
        config: Mapping[str, str | None],
        seconds: float = VALIDATE_SECONDS,
        *,
        batches: bool = False,
    ) -> dict[str, Any]:
        """Return the validation of a config, as Connect's REST does; the plugin may look outside.

        `batches` is for a source whose records go to a sink of fairlead's.

        Raises `HostDied`, `HostSlow`, `PluginFailed`.
        """
        ms = int(seconds * 1000)
        infos: dict[str, Any] = self._ask(
            lambda host: host.ask(
                "validate", seconds + _SLACK, config=config, ms=ms, batches=batches
            )
        )
        return infos

    def exactly_once(self, config: Mapping[str, str]) -> str:
        """Return what a source says of resuming right behind its offset; "" for a sink.

        Raises `HostDied`, `HostSlow`, `PluginFailed`.
        """
        answer: str = self._ask(
            lambda host: host.ask("exactly once", KEYS_SECONDS, config=config, batches=True)
        )
        return answer

    def at_work(self, question: str, **about: object) -> Any:  # noqa: ANN401  # JSON
        """Return the answer of Kafka's own worker, which runs nothing here, to a question.

        Raises `KafkaAway`, `HostDied`, `HostSlow`, `PluginFailed`.
        """

        def ask(host: PluginHost) -> Any:  # noqa: ANN401  # JSON
            ms = int(KAFKA_SECONDS * 1000)
            if why := host.ask("work", KAFKA_SECONDS + _SLACK, name=_NAME, ms=ms, tasks=[]):
                raise KafkaAway(why)
            return host.ask(question, VALIDATE_SECONDS + _SLACK, **about)

        return self._ask(ask)

    def ask_for_offsets(self, **about: object) -> Any:  # noqa: ANN401  # JSON
        """Return what a source says to other offsets in fairlead's log, as Connect tells it.

        Raises `HostDied`, `HostSlow`, `PluginFailed`.
        """
        return self._ask(
            lambda host: host.ask(
                "ask for offsets", VALIDATE_SECONDS + _SLACK, batches=True, **about
            )
        )

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Set the levels of the host's loggers, if there is one; each later one has them, too."""
        with self._lock, suppress(HostDied):
            if self._serving is not None:
                self._serving.host.put("levels", levels=levels)

    def close(self) -> None:
        """End the host, if there is one."""
        with self._lock:
            self._end()

    def _ask(self, ask: Callable[[PluginHost], Any]) -> Any:  # noqa: ANN401  # JSON
        paths = self._paths()
        try:
            with self._host(paths) as host:
                return ask(host)
        except PluginFailed as failed:
            if failed.is_overdue or (now := self._paths()) == paths:
                raise
        with self._host(now) as host:
            return ask(host)

    def _paths(self) -> list[str]:
        # What could not be scanned would be scanned again by each question.
        seconds = _FRESH_SECONDS if self._catalogue.flaws else 0.0
        return [str(each) for each in self.catalogue(seconds).paths]

    @contextmanager
    def _host(self, paths: Sequence[str]) -> Generator[PluginHost]:
        with self._lock:
            serving = self._choose(paths)
            serving.questions += 1
        is_stuck = False
        try:
            yield serving.host
        except (HostSlow, PluginFailed) as failed:
            is_stuck = isinstance(failed, HostSlow) or failed.is_overdue
            raise
        finally:
            with self._lock:
                serving.questions -= 1
                self._release(serving, is_stuck=is_stuck)

    def _release(self, serving: _Serving, *, is_stuck: bool) -> None:
        """Keep a host for the next question, unless code of a plugin is stuck in it."""
        if serving is self._serving and not is_stuck:
            self._end_when_idle()
            return
        if serving is self._serving:
            self._serving = None
        if not serving.questions:
            serving.host.close()

    def _choose(self, paths: Sequence[str]) -> _Serving:
        serving = self._serving
        if serving is not None and serving.host.is_alive and serving.paths == paths:
            return serving
        if serving is not None and not serving.questions:
            serving.host.close()
        self._serving = None  # unless the next one starts
        self._serving = _Serving(self._start(paths), paths)
        return self._serving

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = Timer(self._idle_seconds, self._end_if_idle)
        self._idle.daemon = True
        self._idle.start()

    def _end_if_idle(self) -> None:
        with self._lock:
            if self._serving is not None and not self._serving.questions:
                self._end()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.host.close()
