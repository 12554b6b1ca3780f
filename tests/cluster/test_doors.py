"""The listeners of a real node: https, its socket, and what is refused at the start."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from fairlead.runtime.interfaces.cli.adapters.tls import TlsFiles
from fairlead.runtime.interfaces.cli.requests.client import Client
from fairlead.runtime.node.launcher.commands import FAILED
from fairlead_tests.actor_system import title_of
from fairlead_tests.certificates import DAY, Authority
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import launch_fork, without_remains

pytestmark = pytest.mark.cluster
CA = Authority()


class Home:
    """A folder with a node of https whose keystore is `server.pem`."""

    def __init__(self, folder: Path, nodes: list[Node]) -> None:
        folder.mkdir()
        self.folder = folder
        self.keystore = folder / "server.pem"
        self.ca = str(CA.write(folder / "ca.pem"))
        self._nodes = nodes

    def up(self) -> Node:
        """Start the node."""
        settings = (
            f"data.dir={self.folder / 'data'}",
            *("engine=noop", "workers=0", "listeners=https://127.0.0.1:0"),
            f"listeners.https.ssl.keystore.location={self.keystore}",
            "worker.restart.backoff.ms=100",
        )
        module = "fairlead_tests.cluster.up_process"
        process = launch_fork(self.folder, module, "up", *settings)
        process.stdin.close()
        process.stdout.close()
        self._nodes.append(Node(self.folder, process))
        return self._nodes[-1]

    def said(self) -> str:
        path = self.folder / "stderr"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with without_remains() as nodes:
        yield Home(tmp_path / "home", nodes)


def rest_of(node: Node) -> list[int]:
    """The REST process, once it goes by its title."""
    children = psutil.Process(node.launcher.pid).children()
    return [each.pid for each in children if title_of(each) == "fairlead: rest connect"]


def answers(client: Client) -> bool:
    try:
        return client.get(list[str], "connectors") == []
    except Exception:  # noqa: BLE001  # whatever is wrong: not yet
        return False


@pytest.mark.soak  # each run has both without a node: rest/test_https.py, rest/test_process.py
def test_a_node_serves_https_and_its_socket_and_again_after_the_end_of_rest(home: Home) -> None:
    CA.issue("first").write(home.keystore)
    node = home.up()
    eventually(lambda: " is up with " in home.said(), "the node is up")
    url = home.said().partition("REST on ")[2].partition(",")[0]
    path = home.folder / "data" / "run" / "rest.sock"
    secure = Client(url, "the test", files=TlsFiles(home.ca))
    own = Client(f"unix://{path}", "the test")
    assert (answers(secure), answers(own)) == (True, True)
    assert path.stat().st_mode & 0o777 == 0o600

    CA.issue("second", ends=30 * DAY).write(home.keystore)
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        told = client.get("http://localhost/metrics").text
    assert 'fairlead_certificate_not_after_timestamp_seconds{listener="rest"}' in told

    (first,) = rest_of(node)
    os.kill(first, signal.SIGKILL)  # its socket is left behind
    eventually(lambda: rest_of(node) not in ([], [first]), "another process runs")
    eventually(lambda: answers(own), "its socket serves again")
    eventually(lambda: answers(secure), "https serves again")
    node.launcher.send_signal(signal.SIGTERM)
    node.launcher.wait(60)
    assert not path.exists()


@pytest.mark.parametrize("flaw", ["expired", "readable", "half"])
def test_a_certificate_that_cannot_serve_is_told_in_a_sentence_before_anything_starts(
    home: Home, flaw: str
) -> None:
    CA.issue(ends=-DAY if flaw == "expired" else DAY).write(home.keystore)
    if flaw == "readable":
        home.keystore.chmod(0o644)
    if flaw == "half":
        home.keystore.write_bytes(home.keystore.read_bytes()[:-100])
    node = home.up()
    assert node.launcher.wait(60) == FAILED
    (line,) = home.said().splitlines()
    assert line.startswith("not started: ")
    assert {"expired": "renew it", "readable": "chmod 600 ", "half": "written completely?"}[
        flaw
    ] in line
