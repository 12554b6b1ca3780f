"""Secrets on their way into a runner and out of it: opened for use, concealed for the log."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock

from ....events.model import ErrorClass, Resource, Resources, RunState, Token
from ....projections.launches import Launch
from ...config.redaction import Redaction
from ...config.secrets import CannotUnseal, ReferenceBroken, Vault
from ...pipeline.tasks.reports import (
    Ending,
    Report,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
    Warned,
)
from .runner import ResourceRunner


class UnsealingRunner:
    """A runner that is given configs as the log has them; its connectors see them opened."""

    def __init__(
        self,
        vault: Vault,
        report: Callable[[Report], None],
        make_runner: Callable[[Callable[[Report], None]], ResourceRunner],
        redaction: Redaction | None = None,
    ) -> None:
        self._vault = vault
        self._tell = report
        self._redaction = redaction or Redaction()
        self._lock = Lock()
        """Held while `_sealed` is used: reports come from any thread."""
        self._sealed: dict[str, Launch] = {}
        """The last launch of each connector or of its tasks, as the log has it."""
        self._unopened: dict[Resource, Token] = {}
        """What was to start, and could not be opened: it counts as running until it is stopped."""
        self._runner = make_runner(self._report)

    def start(self, launch: Launch) -> None:
        """Run a launch with its secrets opened; one that cannot be opened is FAILED."""
        name = launch.resource.connector
        with self._lock:
            self._sealed[name] = launch
        try:
            opened = replace(
                launch,
                connector_config=self._opened(name, launch.connector_config),
                config=self._opened(name, launch.config),
                split=tuple(self._opened(name, each) for each in launch.split),
            )
        except (CannotUnseal, ReferenceBroken) as error:
            self._unopened[launch.resource] = launch.token
            self._tell(_not_opened(launch.resource, launch.token, error))
        else:
            self._runner.start(opened)

    def stop(self, resource: Resource) -> None:
        """Let a resource finish its batch and end."""
        if not self._has_ended(resource):
            self._runner.stop(resource)

    def abandon(self) -> None:
        """Cut everything short."""
        for resource in [*self._unopened]:
            self._has_ended(resource)
        self._runner.abandon()

    def close(self, seconds: float) -> Resources:
        """Stop everything, and return what still runs."""
        return self._runner.close(seconds)

    def _has_ended(self, resource: Resource) -> bool:
        """End what never began, and tell whether it was that."""
        token = self._unopened.pop(resource, None)
        if token is not None:
            self._tell(Stopped(resource, token, Ending.STOPPED))
        return token is not None

    def _opened(self, connector: str, config: Mapping[str, str]) -> Mapping[str, str]:
        opened = self._vault.open(connector, config)
        self._redaction.learn(opened.secrets)
        return opened.config

    def _report(self, report: Report) -> None:
        """Pass a report on, without what secrets stand for; task configs are concealed."""
        match report:
            case StatusChanged():
                hide = self._redaction.hide
                self._tell(replace(report, reason=hide(report.reason), trace=hide(report.trace)))
            case Warned():
                self._tell(replace(report, text=self._redaction.hide(report.text)))
            case TaskConfigsChanged():
                self._tell_split(report)
            case _:
                self._tell(report)

    def _tell_split(self, report: TaskConfigsChanged) -> None:
        with self._lock:
            stored = self._sealed[report.connector].connector_config
        try:
            configs = tuple(
                self._vault.conceal(report.connector, config, stored) for config in report.configs
            )
        except (CannotUnseal, ReferenceBroken) as error:
            self._tell(_not_opened(Resource(report.connector), report.token, error))
        else:
            self._tell(replace(report, configs=configs))


def _not_opened(resource: Resource, token: Token, error: Exception) -> StatusChanged:
    failed = RunState.FAILED
    return StatusChanged(resource, token, failed, str(error), error=ErrorClass.CONFIG)
