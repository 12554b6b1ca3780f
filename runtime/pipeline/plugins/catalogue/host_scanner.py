"""Scanning of plugins by Kafka's own classes, each in a plugin host that ends then."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .....events.log.files import make_directory
from ..host import HostDied, HostLaunch, HostSlow, PluginFailed, PluginHost
from .aliases import INTERFACES
from .installing.jars import opened_jar, services_of
from .installing.refusals import PluginRefused
from .scanning import ScannedClass

_SECONDS: Final = 300.0
"""How long a scan may take: one of 100 jars takes half a minute on a busy machine."""
_WITHOUT_PLUGINS: Final = {"plugin.discovery": "service_load"}
"""An empty `plugin.path` would be the working folder (`PluginUtils.pluginLocations`)."""
_TYPES: Final = {interface: kind for kind, interface in INTERFACES.items()}


@dataclass(frozen=True)
class HostScanner:
    """Starts a plugin host for each plugin."""

    launch: HostLaunch

    @property
    def java_release(self) -> int:
        """The release of its Java."""
        return self.launch.java.release

    @property
    def own(self) -> frozenset[tuple[str, str]]:
        """Type and class of Connect's own plugins, by the service files of its jars."""
        own: set[tuple[str, str]] = set()
        for path in self.launch.installation.class_path:
            with opened_jar(path) as jar:
                for interface, names in services_of(jar).items():
                    own |= {(_TYPES[interface], name) for name in names if interface in _TYPES}
        return frozenset(own)

    def scan(self, folder: Path) -> Sequence[ScannedClass]:
        """Return the classes of the plugin in a folder; raises `PluginRefused`."""
        make_directory(self.launch.log.parent)
        try:
            host = PluginHost(self.launch, _WITHOUT_PLUGINS)
            try:
                answer: list[dict[str, Any]] = host.ask("scan", _SECONDS, folder=str(folder))
            finally:
                host.close()
        except (HostDied, HostSlow, PluginFailed) as error:
            raise PluginRefused(f"it could not be scanned: {error}") from None
        return [
            ScannedClass(
                each["type"], each["name"], each["version"], each["service"], each["declared"]
            )
            for each in answer
        ]
