"""One JVM with Spark's gateway, started directly, without a shell or Spark's launcher.

It dies with its parent. Its output goes to a log of limited size, and the last lines are part of
the reason of its end.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .....actors.settings import HIDDEN, sounds_secret
from ....processes.logged import LoggedProcess, ProcessOutput
from ..java import JvmLaunch, prepare

_FOLDER = "jvm-"
_POLL_SECONDS = 0.01


class JvmGateway(NamedTuple):
    """The loopback port and the secret with which Python calls a JVM."""

    port: int
    secret: str

    def __repr__(self) -> str:
        """Keep the secret out of logs."""
        return f"JvmGateway(port={self.port})"


class JvmEnded(Exception):  # noqa: N818  # an event
    """The JVM ended before it could be used."""


class Jvm(LoggedProcess):
    """A JVM process with its folder and, once it has ended, the reason.

    The gateway ends the JVM when its stdin is closed, so `stop` needs no signal.
    """

    def __init__(
        self,
        launch: JvmLaunch,
        folder: Path,
        log: Path,
        on_end: Callable[["Jvm"], None],
        hide: Callable[[str], str] = str,
    ) -> None:
        """Start the JVM; returns at once. Raises `OSError`.

        It dies with the calling thread. `on_end` is called once, on a separate thread. `hide` masks
        secrets in each line of its output.
        """
        self.launch = launch
        self.folder = folder
        self._info = folder / "gateway"
        program, environ = prepare(launch, folder, log, self._info)
        output = ProcessOutput(log, hide, mask_of(launch.settings))
        super().__init__(program, environ, output, "the JVM", on_end)

    def __str__(self) -> str:
        """Return `pid 4711, Java 17.0.15`."""
        return f"pid {self.pid}, Java {self.launch.java.version}"

    def gateway(self) -> JvmGateway:
        """Wait for the gateway and return its address; raises `JvmEnded`."""
        while not self._info.exists():
            if self.ended.wait(_POLL_SECONDS):
                raise JvmEnded(self.why)
        info = self._info.read_bytes()
        self._info.unlink()
        port, length = int.from_bytes(info[:4]), int.from_bytes(info[4:8])
        return JvmGateway(port, info[8 : 8 + length].decode())


def new_folder(parent: Path) -> Path:
    """Create a folder for one JVM that only its owner can read; raises `OSError`."""
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent))


def sweep(parent: Path, keep: Path | None = None) -> None:
    """Remove the folders of former JVMs, except `keep`."""
    for folder in parent.glob(f"{_FOLDER}*"):
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)


def mask_of(settings: Mapping[str, str]) -> Callable[[str], str]:
    """Return what masks in a text the values of the settings whose names suggest a secret."""
    secrets = [value for name, value in settings.items() if value and sounds_secret(name)]
    secrets.sort(key=len, reverse=True)  # one may contain another

    def mask(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return text

    return mask
