"""The plugins of one node: which there are, and hosts that have them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from .....actors.transport import log_levels
from ....processes.java import JavaNotFound, find_java
from ..host import HostLaunch, HostListener, HostSlow, PluginFailed, PluginHost
from ..options import PluginSpec
from ..setup import NotSetUp, find_installation
from .catalogue import Catalogue, open_catalogue
from .host_scanner import HostScanner
from .scanning import NoScanner
from .settings import PluginSettings

SCAN_LOG = "plugin-scan.log"
_LEVELS_SECONDS: Final = 10.0


class NodePlugins:
    """The plugins of a node; usable from any thread."""

    def __init__(
        self,
        data_dir: Path,
        spec: PluginSpec,
        log: str,
        hide: Callable[[str], str],
        resolve: Callable[[Mapping[str, str]], Mapping[str, str]],
    ) -> None:
        """`log` names the file of the hosts' output, in which `hide` masks secrets.

        `resolve` replaces the references in the properties of a worker.
        """
        folders = [Path(each) for each in spec.path]
        self.settings = PluginSettings(data_dir, folders, allow=tuple(spec.allow))
        self._spec = spec
        self._logs = data_dir / "logs"
        self._log = log
        self._hide = hide
        self._resolve = resolve

    def catalogue(self) -> Catalogue:
        """Return the plugins that can be used; those that are new are scanned first."""
        try:
            return open_catalogue(self.settings, HostScanner(self._launch(SCAN_LOG)))
        except (NotSetUp, JavaNotFound) as error:
            return open_catalogue(self.settings, NoScanner(str(error)))

    def known(self) -> Catalogue:
        """Return the plugins that were scanned before, at once; each other one is a flaw."""
        return open_catalogue(self.settings, NoScanner("it is scanned when it is needed"))

    def start(self, paths: Sequence[str], listener: HostListener | None = None) -> PluginHost:
        """Start a host with the plugins of some folders of the catalogue.

        Its loggers have the levels of the node. Raises `HostDied`, `HostSlow`, `PluginFailed`,
        `NotSetUp`, `JavaNotFound`, and what `resolve` raises.
        """
        # To Kafka an empty path is the working folder.
        path = {"plugin.path": ",".join(paths)} if paths else {}
        properties = {**self._resolve(self._spec.properties), **path}
        host = PluginHost(self._launch(self._log), properties, listener)
        try:
            if levels := self.levels():
                host.ask("levels", _LEVELS_SECONDS, levels=levels)
        except (HostSlow, PluginFailed):
            host.close()
            raise
        return host

    def levels(self) -> Mapping[str, str]:
        """Return the levels that were set for the loggers of the node."""
        return {name: each.level for name, each in log_levels.read(self._logs).items()}

    def _launch(self, log: str) -> HostLaunch:
        options, path = self._spec.host, self._logs / log
        return HostLaunch(find_installation(), find_java(), path, options, self._hide)
