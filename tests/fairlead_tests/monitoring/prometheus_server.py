"""A Prometheus server for tests, which watches nodes by the alerts that the project ships.

Time passes quicker in its copy of the rules: what they wait for, and look back on, is divided.
Thresholds are as they are.
"""

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx
import pytest
import yaml

from fairlead.actors.transport.ports import free_port
from fairlead_tests.monitoring.rules import RULES

QUICKER: Final = 120
PATIENCE_SECONDS: Final = 60.0
_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = re.compile(r"(?<=\[)\d+[smh](?=\])|(?<=offset )\d+[smh]|(?<=for: )\d+[smh]")
_SECONDS = re.compile(r"(?<=> )900\b|\b24 \* 3600\b")
"""What rules have in seconds, beside their thresholds."""


def quicken(rules: str, quicker: int) -> str:
    """Return rules in whose time a second is so many."""
    rules = _SECONDS.sub(lambda found: f"{found[0]} / {quicker}", rules)
    return _DURATION.sub(
        lambda found: f"{int(found[0][:-1]) * _UNITS[found[0][-1]] // quicker}ms", rules
    )


class Prometheus:
    """A running server."""

    def __init__(self, url: str, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self._client = httpx.Client(base_url=url, trust_env=False)
        self._process = process
        self._folder = folder

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API; raises `AssertionError` if it is no success."""
        answer = self._client.get(f"/api/v1/{path}", params=parameters).json()
        assert answer["status"] == "success", f"{parameters}: {answer}"
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of a query, each with `metric` and `value`."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def comes(self, expression: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until a query has a sample."""
        deadline = time.monotonic() + seconds
        while not self.query(expression):
            assert time.monotonic() < deadline, f"nothing is {expression}"
            time.sleep(0.1)

    def firing(self) -> dict[str, list[Mapping[str, str]]]:
        """Return the alerts that fire now, by name, each with its labels and texts."""
        found: dict[str, list[Mapping[str, str]]] = {}
        for each in self.ask("alerts")["alerts"]:
            if each["state"] == "firing":
                labels = {**each["labels"], **each["annotations"]}
                found.setdefault(labels["alertname"], []).append(labels)
        return found

    def fires(self, name: str, seconds: float = PATIENCE_SECONDS) -> list[Mapping[str, str]]:
        """Wait until an alert fires, and return what it says."""
        deadline = time.monotonic() + seconds
        while name not in (found := self.firing()):
            assert time.monotonic() < deadline, f"{name} does not fire, but {[*found]} do"
            time.sleep(0.1)
        return found[name]

    def ends(self, name: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until an alert does not fire."""
        deadline = time.monotonic() + seconds
        while found := self.firing().get(name):
            assert time.monotonic() < deadline, f"{found} does not end"
            time.sleep(0.1)

    def watch(self, targets: Sequence[str]) -> None:
        """Scrape other targets from now on."""
        _configure(self._folder, targets, {})
        self._process.send_signal(signal.SIGHUP)

    def is_ready(self) -> bool:
        """Tell whether it answers; raises `AssertionError` if it has ended."""
        assert self._process.poll() is None, (self._folder / "log").read_text()
        try:
            return self._client.get("/-/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """End the server."""
        self._client.close()
        self._process.send_signal(signal.SIGKILL)  # nothing of it is kept
        self._process.wait()


def _configure(folder: Path, targets: Sequence[str], scrape: Mapping[str, Any]) -> None:
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": "fairlead", "static_configs": [{"targets": [*targets]}], **scrape}
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))


@contextmanager
def running_prometheus(
    folder: Path,
    targets: Sequence[str],
    quicker: int = QUICKER,
    scrape: Mapping[str, Any] = MappingProxyType({}),
) -> Generator[Prometheus]:
    """Run a server that scrapes `host:port` each second; skip the test if there is none.

    `scrape` is what its configuration has of the scrape besides.
    """
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not here: tests/servers/install-prometheus installs it")
    folder.mkdir(exist_ok=True)
    (folder / "rules.yml").write_text(quicken(RULES.read_text(), quicker))
    _configure(folder, targets, scrape)
    port, log = free_port(), folder / "log"
    command = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    server = Prometheus(f"http://127.0.0.1:{port}", process, folder)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not server.is_ready():
            assert time.monotonic() < deadline, "Prometheus is not ready"
            time.sleep(0.05)
        yield server
    finally:
        server.close()
