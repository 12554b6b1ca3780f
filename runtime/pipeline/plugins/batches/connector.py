"""A connector of Kafka Connect that splits its work in a host, for a pipeline.

A question to the host is waited for in short turns, so that a plugin that blocks holds up nothing
but its own connector, whose status says where its code is.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from ...spi.context import Context
from ...spi.errors import FailedElsewhere, NotReady, SourceAway
from ..host import HostDied, OpenQuestion, PluginFailed
from ..running.runs import HostedRun
from .host_run import join, put, require_at_work, stop

_START: Final = "start connector"
_TURN_S: Final = 1.0
"""How long an answer is waited for at once."""


class SplittingConnector:
    """One connector, from its first split to its stop."""

    def __init__(self, context: Context, config: Mapping[str, str], part: str = "") -> None:
        """Start nothing yet; `part` tells which of two plugins it is."""
        self._context = context
        self._config = config
        self._part = part
        self._stack = ExitStack()
        self._run: HostedRun | None = None
        self._start: OpenQuestion | None = None
        """The question that has the connector made; None: it has not been put."""
        self._question: OpenQuestion | None = None
        """That which has no answer yet."""
        self._asked_at = 0.0
        """Since when, in seconds since 1970."""
        self._has_started = False
        self.support: str | None = None
        """What a source says of resuming right behind its offset; None: it was not asked yet."""

    def ask_support(self) -> None:
        """Ask a source whether it resumes right behind its offset, unless it has said so.

        Raises as `split` does.
        """
        if self.support is None:
            self.support = str(self._answer(self._joined(), "exactly once"))

    def split(self) -> Sequence[Mapping[str, str]]:
        """Return the task configs of the plugin.

        Raises `NotReady`, `SourceAway`, `FailedElsewhere`.
        """
        run, question = self._joined(), "task configs" if self._has_started else _START
        configs: Sequence[Mapping[str, str]] = self._answer(run, question)
        self._has_started, run.wants_reconfiguration = True, False
        return configs

    def _joined(self) -> HostedRun:
        if self._run is None:
            self._run = join(self._stack, self._context, self._config, self._part)
        require_at_work(self._run)
        return self._run

    def _answer(self, run: HostedRun, question: str) -> Any:  # noqa: ANN401  # JSON
        if self._question is None:
            self._question = put(run, question, **run.place, config=self._config)
            self._start = self._question if question == _START else self._start
            self._asked_at = time.time()
        self._question.wait(_TURN_S)
        if not self._question.is_done:
            since = time.strftime("%H:%M:%S", time.localtime(self._asked_at))
            line = self._question.where()
            where = f": it is at {line}" if line else ""
            raise NotReady(f"the plugin has not come back since {since}{where}")
        answered, self._question = self._question, None
        try:
            return answered.result(0)
        except PluginFailed as failed:
            raise FailedElsewhere(run.trace or str(failed)) from None
        except HostDied as died:
            raise SourceAway(f"the plugin host has ended: {died}") from None

    @property
    def wants_split(self) -> bool:
        """Whether the plugin asks to split again, or there is something to say of it."""
        run = self._run
        return run is not None and bool(
            run.wants_reconfiguration or run.is_outdated or run.has_failed or run.ended
        )

    def stop(self) -> None:
        """Stop the connector, and leave its host."""
        with self._stack:
            if self._run is not None:
                stop(self._run, self._start, "stop connector")
