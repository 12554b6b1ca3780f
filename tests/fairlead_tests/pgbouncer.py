"""The pooler pgbouncer, in front of a server of tests."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from fairlead.actors.transport.ports import free_port

from .postgres_server import (
    PASSWORD,
    Database,
    NoServer,
    PostgresServer,
    as_server_user,
    owned_by_server_user,
    tied_to_run,
    wait_until,
)

_CONFIG = """[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = scram-sha-256
auth_file = users
unix_socket_dir =
logfile = log
pidfile = pid
{settings}
"""


@contextmanager
def pooled(database: Database, **settings: str) -> Generator[str]:
    """Yield the URL of a database through a pooler with these settings; raises `NoServer`."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise NoServer("there is no pgbouncer: tests/servers/install-pgbouncer installs it")
    server: PostgresServer = database.server
    with tempfile.TemporaryDirectory(prefix="fairlead-pgbouncer-") as name:
        folder, port = Path(name), free_port()
        lines = "\n".join(f"{key} = {value}" for key, value in settings.items())
        (folder / "ini").write_text(_CONFIG.format(server=server.port, port=port, settings=lines))
        (folder / "users").write_text(f'"postgres" "{PASSWORD}"\n')
        for each in (folder, *folder.iterdir()):
            owned_by_server_user(each)
        made = subprocess.Popen(
            tied_to_run([program, "--quiet", "ini"], signal.SIGKILL),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_server_user(folder),
        )
        try:
            wait_until(lambda: "up" in _read(folder / "log") and (folder / "pid").exists())
            yield database.url.replace(f":{server.port}/", f":{port}/")
        finally:
            made.terminate()
            made.wait(60)


def _read(log: Path) -> str:
    return log.read_text() if log.exists() else ""
