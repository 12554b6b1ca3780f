"""Secrets on their way into a runner and out of it: opened for use, concealed for the log."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock

from ...events.model import Resource, Resources, RunState
from ...projections.launches import Launch
from ..config.redaction import Redaction
from ..config.secrets import CannotUnseal, ReferenceBroken, Vault
from ..tasks.reports import Report, StatusChanged, TaskConfigsChanged, Warned
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
        self._sealed: dict[str, Launch] = {}
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
            reason = str(error)
            failed = StatusChanged(launch.resource, launch.token, RunState.FAILED, reason)
            self._tell(failed)
        else:
            self._runner.start(opened)

    def stop(self, resource: Resource) -> None:
        """Let a resource finish its batch and end."""
        self._runner.stop(resource)

    def abandon(self) -> None:
        """Cut everything short."""
        self._runner.abandon()

    def running(self) -> Resources:
        """Return what runs."""
        return self._runner.running()

    def close(self, seconds: float) -> Resources:
        """Stop everything, and return what still runs."""
        return self._runner.close(seconds)

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
            connector = Resource(report.connector)
            self._tell(StatusChanged(connector, report.token, RunState.FAILED, str(error)))
        else:
            self._tell(replace(report, configs=configs))
