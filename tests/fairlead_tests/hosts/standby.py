# pyright: basic
"""A PostgreSQL primary and its synchronous standby: a commit is answered once both have it."""

import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from fairlead_tests.postgres_server import (
    PASSWORD,
    PostgresServer,
    as_server_user,
    started,
    wait_until,
)


@dataclass
class Pair:
    """Two servers, each on its own port for good: one is the primary, the other its standby."""

    primary: PostgresServer
    standby: PostgresServer

    def promote(self) -> None:
        """Lose the primary; the standby takes its place, and waits for a standby in turn."""
        self.primary.kill()
        self.primary, self.standby = self.standby, self.primary
        self.primary.asked().execute("SELECT pg_promote()")

    def restore(self) -> None:
        """Make the lost server a standby, from a copy of the primary."""
        server = self.standby
        shutil.rmtree(server.data, ignore_errors=True)
        place = f"host=127.0.0.1 port={self.primary.port} user=postgres password={PASSWORD}"
        command = [str(server.bin / "pg_basebackup"), "--dbname", place, "--no-sync"]
        command += ["--pgdata", str(server.data), "--checkpoint", "fast", "--write-recovery-conf"]
        subprocess.run(command, check=True, capture_output=True, **as_server_user(server.folder))
        server.start()
        self.wait()

    def wait(self) -> None:
        """Wait until the standby has all of the primary."""
        query = "SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
        wait_until(lambda: self.primary.asked().execute(query).fetchone() is not None)


@contextmanager
def pair() -> Generator[Pair]:
    """Yield a pair that hosts of trials reach; raises `NoServer`."""
    settings = {
        "listen_addresses": "*",
        "synchronous_standby_names": "*",
        "wal_retrieve_retry_interval": "200ms",
    }
    with started(**settings) as primary, started(**settings) as standby:
        with (primary.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.89.0.0/24 scram-sha-256\n")
        primary.asked().execute("SELECT pg_reload_conf()")
        standby.stop()
        made = Pair(primary, standby)
        made.restore()
        yield made
