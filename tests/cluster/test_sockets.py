"""Every socket at which a node listens is in the table of its page, and serves no stranger."""

import re
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from fairlead_tests.actor_system import title_of
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import launch_fork, without_remains
from fairlead_tests.pages import DOCS

pytestmark = pytest.mark.cluster
LISTENS = 0x10000
"""The flag of a Unix socket that listens, `__SO_ACCEPTCON`."""
OF_SPARK = {("engine", "run/engine.sock"), *((each, "127.0.0.1") for each in ("java", "python"))}
ON_DEMAND = {("samples", "127.0.0.1")}
"""Of the process that begins with the first sample, and ends when it is idle."""
CALL_OF_PY4J = b"c\nt\ncurrentTimeMillis\ne\n"
WRONG_SECRET = b"\0\0\0\5wrong" + b"x" * 100_000
REFUSALS = re.compile(rb"|!xsAuthentication error: .*|....\x00\x00\x00\x03err", re.DOTALL)
"""What a stranger hears: nothing, or of Py4J and of Spark's Python that it is refused."""


class Socket(NamedTuple):
    """A socket that listens: its process, where it is as the page has it, and its port."""

    process: str
    place: str
    port: int = 0


def sockets_of_page() -> set[tuple[str, str]]:
    """Return the processes and places in the table."""
    section = (DOCS / "operating" / "doors.md").read_text().partition("## Every socket")[2]
    rows = re.findall(r"^\| ([a-z, ]+) \| `([^`]+)`", section.partition("\n## ")[0], re.MULTILINE)
    return {(process, place) for names, place in rows for process in names.split(", ")}


def name_of(process: psutil.Process) -> str:
    """Return the name of a process as the page has it."""
    title = title_of(process)
    if title.startswith("fairlead: "):
        return title.split()[1]
    return process.name() if process.name() in {"java", "python"} else "up"


def sockets_of(process: psutil.Process, configured: dict[int, str]) -> Iterator[Socket]:
    """Yield the sockets at which a process listens, or waits for datagrams."""
    for each in process.net_connections("inet"):
        if each.status in {psutil.CONN_LISTEN, psutil.CONN_NONE} and each.laddr:
            host = each.laddr.ip.removeprefix("::ffff:")
            port = each.laddr.port
            place = configured.get(port, host) if host == "127.0.0.1" else host
            yield Socket(name_of(process), place, port)
    paths = Path(f"/proc/{process.pid}")
    files = {f"{each.readlink()}" for each in (paths / "fd").iterdir() if each.is_symlink()}
    for line in (paths / "net" / "unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split()
        if int(flags, 16) & LISTENS and f"socket:[{inode}]" in files:
            name = Path("".join(path)).name  # it is bound by the open folder
            yield Socket(name_of(process), "listeners" if name == "more.sock" else f"run/{name}")


def heard_by_a_stranger(at: Socket) -> bytes:
    """Return what is answered until the connection ends, or for a moment."""
    heard = b""
    with socket.create_connection((at.place, at.port), timeout=60) as stranger:
        stranger.settimeout(1)  # for an answer that does not come
        try:
            stranger.sendall(CALL_OF_PY4J if at.process == "java" else WRONG_SECRET)
            while piece := stranger.recv(4096):
                heard += piece
        except (ConnectionError, TimeoutError):
            pass
    return heard


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start(folder: Path, *settings: str) -> Node:
    """Start a node with all listeners there are; no broker answers it."""
    folder.mkdir()
    urls = f"listeners=http://127.0.0.1:0,unix://{folder}/more.sock"
    kafka = (
        f"kafka.listeners=PLAINTEXT://127.0.0.1:{free_port()}",
        "kafka.bootstrap.servers=127.0.0.1:9",
    )
    module = "fairlead_tests.cluster.up_process"
    process = launch_fork(folder, module, "up", f"data.dir={folder}/data", urls, *kafka, *settings)
    process.stdin.close()
    process.stdout.close()
    node = Node(folder, process)
    eventually(lambda: " is up with " in (folder / "stderr").read_text(), "the node is up")
    return node


@pytest.mark.parametrize(
    "engine", ["noop", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.soak])]
)
def test_every_socket_is_in_the_table_of_its_page_and_serves_no_stranger(
    tmp_path: Path, engine: str
) -> None:
    page = sockets_of_page()
    lasting = page - ON_DEMAND
    expected = lasting if engine == "spark" else lasting - OF_SPARK - {("engine", "127.0.0.1")}
    with without_remains() as nodes:
        node = start(tmp_path / "node", f"engine={engine}", "workers=2")
        nodes.append(node)

        def sockets() -> list[Socket]:
            processes = node.processes()
            of_rest = {"rest": "listeners", "kafka": "kafka.listeners"}
            configured = {
                each.laddr.port: of_rest[name_of(process)]
                for process in processes
                if name_of(process) in of_rest
                for each in process.net_connections("inet")
                if each.status == psutil.CONN_LISTEN
            }
            return [each for process in processes for each in sockets_of(process, configured)]

        eventually(lambda: {each[:2] for each in sockets()} >= expected, "all processes are there")
        assert {each[:2] for each in sockets()} == expected
        for path in ("rest.sock", *(["engine.sock"] if engine == "spark" else [])):
            assert (node.data_dir / "run" / path).stat().st_mode & 0o777 == 0o600
        assert (node.data_dir / "run").stat().st_mode & 0o777 == 0o700
        private = [each for each in sockets() if each.place == "127.0.0.1"]
        with ThreadPoolExecutor(len(private)) as strangers:
            heard = dict(zip(private, strangers.map(heard_by_a_stranger, private), strict=True))
        assert {each: it for each, it in heard.items() if not REFUSALS.fullmatch(it)} == {}
        node.launcher.send_signal(signal.SIGTERM)
        assert node.launcher.wait(60) == 0
