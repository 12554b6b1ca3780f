"""Joins a plugin host, and leaves it: for connectors and tasks that feed a sink of fairlead's."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Final

from ...spi.context import Context
from ...spi.errors import FailedElsewhere, NotReady, SourceAway
from ..host import HostDied, OpenQuestion, PluginFailed
from ..running.hosts import TaskHosts
from ..running.runs import STOP_SLACK_S, HostedRun

_LOOK_S: Final = 0.05
_SLOW_S: Final = 10.0
"""The time between two looks at a task that has nothing."""


def join(
    stack: ExitStack, context: Context, config: Mapping[str, str], part: str = ""
) -> HostedRun:
    """Return the run of a connector or task in its host, or a part's, until the stack is closed.

    Raises `PluginUnknown` for a class that is not here, or may not run.
    """
    hosts = context.shared.get(TaskHosts, _no_hosts)
    plugins = hosts.require(config)
    joined = hosts.joined(context.resource, lambda: True, plugins, needs_kafka=False, part=part)
    run = stack.enter_context(joined)
    run.when_changed(context.wake)
    return run


def _no_hosts() -> TaskHosts:
    raise NotReady("this process runs no plugins of Kafka Connect")


def require_at_work(run: HostedRun) -> None:
    """Raise `SourceAway`, `NotReady`, or `FailedElsewhere`, unless the host works."""
    if run.ended is not None:
        raise SourceAway(f"the plugin host has ended: {run.ended}")
    if run.has_failed:
        raise FailedElsewhere(run.trace)
    if run.is_outdated:
        raise SourceAway("a value that its config refers to is read again (config.reload.action)")
    if run.waits is not None:
        raise NotReady(f"waiting for the plugin host: {run.waits}")


def put(run: HostedRun, question: str, data: bytes = b"", /, **about: object) -> OpenQuestion:
    """Put a question to the host; raises `SourceAway` if there is none any more."""
    try:
        return run.put(question, data, **about)
    except HostDied as died:
        raise SourceAway(f"the plugin host has ended: {died}") from None


class HangWatch:
    """Notices that code of a task's plugin does not come back, but for a poll."""

    def __init__(self) -> None:
        """Look some time from now for the first time."""
        self._look_at = time.monotonic() + _SLOW_S
        self._question: OpenQuestion | None = None
        """That which has no answer yet."""
        self._seen: Mapping[str, str] | None = None
        """Which method was at work at the last look, and at which line; None: none was."""
        self._since = ""
        """Since when, as a time of day."""
        self._remark = ""

    def look(self, run: HostedRun) -> str:
        """Return what does not come back, since when and at which line; "" if nothing is known."""
        if self._question is None and time.monotonic() >= self._look_at:
            self._question = put(run, "busy", **run.place)
        if self._question is not None and self._question.is_done:
            with suppress(HostDied, PluginFailed):
                self._note(self._question.result(0))
            self._question, self._look_at = None, time.monotonic() + _SLOW_S
        return self._remark

    def _note(self, busy: Mapping[str, str] | None) -> None:
        if not busy:
            self._remark = ""
        elif busy == self._seen:
            line = f"it is at {busy['line']}"
            self._remark = f"its {busy['method']} has not come back since {self._since}: {line}"
        else:
            self._since, self._remark = time.strftime("%H:%M:%S"), ""
        self._seen = busy


def stop(run: HostedRun, started: OpenQuestion | None, question: str) -> None:
    """Stop what was started, if anything was; a host in which its code goes on is replaced."""
    if started is not None:
        with suppress(HostDied):  # so has all that ran in it
            run.stop(started, question, lambda each: _wait(run, each))


def _wait(run: HostedRun, question: OpenQuestion) -> None:
    """Wait for an answer as long as a stop may take."""
    by = time.monotonic() + run.grace_s + STOP_SLACK_S
    while not question.is_done and time.monotonic() < by:
        question.wait(_LOOK_S)
