"""A node that Prometheus watches; it may be ended and brought up again at the same address."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from fairlead.actors.transport.ports import free_port
from fairlead_tests.cluster.node import PATIENCE_SECONDS, Node, eventually
from fairlead_tests.cluster.remains import launch, launch_fork, without_remains
from fairlead_tests.monitoring.prometheus_server import QUICKER, Prometheus, running_prometheus


class WatchedNode:
    """A node with its REST interface, and the server that scrapes it."""

    def __init__(
        self, folder: Path, nodes: list[Node], settings: tuple[str, ...], scheme: str = "http"
    ) -> None:
        folder.mkdir()
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"{scheme}://{self.address}"
        self._settings = (f"data.dir={folder / 'data'}", f"listeners={self.url}", *settings)
        self._nodes = nodes

    @property
    def node(self) -> Node:
        """Return the node that came up last."""
        return [each for each in self._nodes if each.folder == self.folder][-1]

    def kill(self) -> None:
        """Kill all processes of the node."""
        launcher, *others = self.node.processes()
        for each in (launcher, *others):
            each.kill()
        self.node.launcher.wait()
        psutil.wait_procs(others, PATIENCE_SECONDS)
        self.node.hang_up()
        self.node.forget_log()

    def up(self, *disk: str) -> None:
        """Bring the node up; `disk` is a command that mounts one first."""
        words = ("fairlead_tests.cluster.up_process", "up", *self._settings)
        process = (
            launch(self.folder, [*disk, sys.executable, "-m", *words])
            if disk
            else launch_fork(self.folder, *words)
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        self._nodes.append(Node(self.folder, process))
        times = sum(each.folder == self.folder for each in self._nodes)
        said = self.folder / "stderr"

        def is_up() -> bool:
            assert process.poll() is None, said.read_text()
            return said.read_text().count(" is up with ") == times

        eventually(is_up, "the node is up")


@contextmanager
def watched_node(
    folder: Path, *settings: str, quicker: int = QUICKER
) -> Generator[tuple[WatchedNode, Prometheus]]:
    """Yield a node that is not up yet, and a Prometheus that watches it."""
    folder.mkdir(exist_ok=True)
    with without_remains() as nodes:
        watched = WatchedNode(folder / "home", nodes, settings)
        with running_prometheus(folder / "prometheus", [watched.address], quicker) as prometheus:
            yield watched, prometheus
