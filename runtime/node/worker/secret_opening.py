"""Decrypts secrets in the configs that a runner gets, and redacts them in its reports."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock

from ....events.model import ErrorClass, Resource, Resources, RunState, Token
from ....projections.launches import Launch
from ...config.redaction import Redaction
from ...config.references.resolving import ReferenceBroken
from ...config.secrets import CannotUnseal, Vault
from ...pipeline.tasks.reports import (
    Ending,
    Report,
    StatusChanged,
    Stopped,
    TaskConfigsChanged,
    Warned,
)
from .runner import TaskRunner


class DecryptingRunner:
    """Wraps a runner: it takes configs with sealed secrets; the connectors see plain values."""

    def __init__(
        self,
        vault: Vault,
        report: Callable[[Report], None],
        make_runner: Callable[[Callable[[Report], None]], TaskRunner],
        redaction: Redaction | None = None,
    ) -> None:
        self._vault = vault
        self._tell = report
        self._redaction = redaction or Redaction()
        self._lock = Lock()
        """Held while `_sealed` is used: reports come from any thread."""
        self._sealed: dict[str, Launch] = {}
        """The last launch of each connector or one of its tasks, with sealed secrets."""
        self._unopened: dict[Resource, Token] = {}
        """Resources whose secrets could not be opened: they are FAILED until they are stopped."""
        self._runner = make_runner(self._report)

    def start(self, launch: Launch) -> None:
        """Run a launch with its secrets unsealed; report FAILED if that is not possible."""
        name = launch.resource.connector
        with self._lock:
            self._sealed[name] = launch
        try:
            opened = replace(
                launch,
                connector_config=self._unseal(name, launch.connector_config),
                config=self._unseal(name, launch.config),
                split=tuple(self._unseal(name, each) for each in launch.split),
            )
        except (CannotUnseal, ReferenceBroken) as error:
            self._unopened[launch.resource] = launch.token
            self._tell(_unseal_failure(launch.resource, launch.token, error))
        else:
            self._runner.start(opened)

    def stop(self, resource: Resource) -> None:
        """Stop a resource gracefully, after its current batch."""
        if not self._has_ended(resource):
            self._runner.stop(resource)

    def abandon(self) -> None:
        """Cancel everything at once."""
        for resource in [*self._unopened]:
            self._has_ended(resource)
        self._runner.abandon()

    def wake(self) -> None:
        """Wake all tasks: each checks at once whether its engine is there."""
        self._runner.wake()

    def close(self, seconds: float) -> Resources:
        """Stop everything; return the resources that still run after so many seconds."""
        return self._runner.close(seconds)

    def _has_ended(self, resource: Resource) -> bool:
        """Report a resource that was never started as stopped; return whether it was such a one."""
        token = self._unopened.pop(resource, None)
        if token is not None:
            self._tell(Stopped(resource, token, Ending.STOPPED))
        return token is not None

    def _unseal(self, connector: str, config: Mapping[str, str]) -> Mapping[str, str]:
        opened = self._vault.open(connector, config)
        self._redaction.learn(opened.secrets)
        return opened.config

    def _report(self, report: Report) -> None:
        """Forward a report with its secrets redacted, and those in task configs sealed."""
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
            self._tell(_unseal_failure(Resource(report.connector), report.token, error))
        else:
            self._tell(replace(report, configs=configs))


def _unseal_failure(resource: Resource, token: Token, error: Exception) -> StatusChanged:
    failed = RunState.FAILED
    return StatusChanged(resource, token, failed, str(error), error=ErrorClass.CONFIG)
