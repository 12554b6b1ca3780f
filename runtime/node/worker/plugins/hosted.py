"""Connectors and tasks of Kafka Connect's own classes, in the plugin host of a worker."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final

from .....projections.launches import Launch
from ....cluster.node_files import PluginsFile, plugins_file, write_plugins
from ....cluster.run_folder import RunFolder
from ....cluster.spec import NodeSpec
from ....config.connect_worker import resolve_properties
from ....config.references.redaction import Redaction
from ....pipeline.connectors.plugins import Plugins, is_pipeline
from ....pipeline.plugins.catalogue.catalogue import Catalogue
from ....pipeline.plugins.catalogue.of_node import NodePlugins
from ....pipeline.plugins.host import HostListener, PluginHost
from ....pipeline.plugins.options import BY_CONNECTOR
from ....pipeline.plugins.running.bodies import PluginConnector, PluginTask
from ....pipeline.plugins.running.figures import Bean
from ....pipeline.plugins.running.hosts import HostServices, TaskHosts
from ....pipeline.spi.context import Shared
from ....pipeline.spi.errors import PluginUnknown
from ....pipeline.spi.keys.common import CONNECTOR_CLASS
from ....pipeline.tasks.ledger import Ledger
from ....pipeline.tasks.reports import Report
from .rights import ActorRights

_FRESH_S: Final = 3.0
"""How long a look at the installed plugins counts."""


class HostedPlugins:
    """Runs what is of Connect's own classes; usable from any thread."""

    def __init__(
        self,
        node: NodeSpec,
        worker: str,
        own: Plugins,
        ledger: Ledger,
        redaction: Redaction,
        rights: ActorRights,
    ) -> None:
        """`own` are the connector classes of Python, which come first. No JVM is started yet."""
        self._own = own
        self._redaction = redaction
        self._providers = node.plugins.providers
        self._found: dict[str, dict[str, str]] = {}
        """The secrets that hosts have looked up for each connector, and what to show instead."""
        self._grace_s = node.engine.grace_ms / 1000
        self._lock = Lock()
        """Held while the catalogue is read."""
        self._known = float("-inf"), Catalogue((), (), ())
        """When it was looked without a scan, on the monotonic clock, and what was known then."""
        self._catalogue: Catalogue | None = None
        self._read_at = 0.0
        """On the monotonic clock."""
        data_dir = str(node.data_dir)

        def resolved(properties: Mapping[str, str]) -> Mapping[str, str]:
            return resolve_properties(properties, data_dir, redaction.learn)

        log = f"plugin-host-{worker}.log"
        self._plugins = NodePlugins(node.data_dir, node.plugins, log, redaction.hide, resolved)
        idle_s = node.plugins.idle_ms / 1000
        isolates = node.plugins.isolation == BY_CONNECTOR
        self._file = plugins_file(RunFolder(node.data_dir).path, worker)
        services = HostServices(
            self._start,
            worker,
            idle_s,
            self._learn,
            lambda config: self._require(config, _FRESH_S),
            ledger,
            rights,
            isolates,
            self._grace_s,
            self._publish,
            self._plugins.levels,
        )
        self._hosts = TaskHosts(services)
        self.shared = Shared()
        """Where those sources of pipelines find the hosts that are plugins."""
        self.shared.get(TaskHosts, lambda: self._hosts)

    def body(
        self, launch: Launch, report: Callable[[Report], None]
    ) -> PluginConnector | PluginTask | None:
        """Return what runs a launch as Connect does; None: a pipeline does, or nothing.

        The worker's actor calls it, so nothing is scanned yet.
        """
        name = launch.connector_config.get(CONNECTOR_CLASS, "")
        if is_pipeline(launch.connector_config) or not self._may_have(name):
            return None
        made_by = PluginTask if launch.resource.is_task else PluginConnector
        require = partial(self._require, launch.connector_config)
        return made_by(launch, self._hosts, report, self._grace_s, require)

    def providers_for(self, config: Mapping[str, str]) -> Collection[str]:
        """Return the names of those references in a connector's config that a host resolves."""
        name = config.get(CONNECTOR_CLASS, "")
        return self._providers if self._providers and self._may_have(name) else ()

    def secrets_of(self, connector: str) -> Mapping[str, str]:
        """Return the secrets that hosts have looked up for a connector, and what to show."""
        return dict(self._found.get(connector, {}))

    def close(self) -> None:
        """End the host."""
        self._hosts.close()
        self._file.unlink(missing_ok=True)

    def _may_have(self, name: str) -> bool:
        """Return whether a class is a plugin's, as far as that is known without a scan."""
        if self._own.has(name):
            return False
        read_at, known = self._known
        if time.monotonic() - read_at <= _FRESH_S and _may_be_in(known, name):
            return True
        known = self._plugins.known()  # what is not here may have come since
        self._known = time.monotonic(), known
        return _may_be_in(known, name)

    def _require(self, config: Mapping[str, str], old_s: float) -> frozenset[str]:
        """Return the folders of the plugins that a config names, as of `old_s` ago at most.

        Raises `PluginUnknown` for a class of a connector that is not here, or may not run.
        """
        name, plugins = config.get(CONNECTOR_CLASS, ""), self._look(old_s).plugins
        if not any(each.answers_to(name) for each in plugins):
            plugins = self._look(0.0).plugins
        plugin = next((each for each in plugins if each.answers_to(name)), None)
        if plugin is None:
            here = dict.fromkeys(each.class_name for each in plugins if each.is_connector)
            # It tells what is similar, and where it might come from.
            replace(self._own, others=tuple(here)).find(name)
        elif not (settings := self._plugins.settings).allows(plugin.class_name):
            raise PluginUnknown(settings.refusal(plugin.class_name))
        named = {*config.values()}
        return frozenset(str(each.folder) for each in plugins if not named.isdisjoint(each.names))

    def _learn(self, connector: str, secrets: Mapping[str, str]) -> None:
        self._found.setdefault(connector, {}).update(secrets)
        self._redaction.learn(secrets)

    def _publish(self, beans: Sequence[Bean], loggers: Mapping[str, str]) -> None:
        write_plugins(self._file, PluginsFile(beans, loggers))

    def _start(self, listener: HostListener) -> PluginHost:
        return self._plugins.start([str(each) for each in self._look(0.0).paths], listener)

    def _look(self, fresh_s: float) -> Catalogue:
        with self._lock:
            now = time.monotonic()
            if self._catalogue is None or now - self._read_at > fresh_s:
                self._catalogue, self._read_at = self._plugins.catalogue(), now
            return self._catalogue


def _may_be_in(known: Catalogue, name: str) -> bool:
    """Return whether a class is in a catalogue, or may be in what could not be read."""
    return bool(known.flaws) or any(each.answers_to(name) for each in known.plugins)
