"""A Spark Connect server on loopback, from the installed package; it asks for a token."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from fairlead.actors.tether import tied
from fairlead.actors.transport.ports import free_port
from fairlead.runtime.pipeline.engines.java import JVM_OPENS, spark_home
from fairlead.runtime.pipeline.engines.settings import properties
from fairlead.runtime.processes.java import find_java

HOST = "127.0.0.1"
SERVICE = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS = 150.0


class ConnectServerProcess:
    """One server after another on the same port; it ends with this process."""

    def __init__(
        self,
        folder: Path,
        conf: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        """Use a folder for its files, and settings that override the small defaults."""
        self._python = python
        self.token = secrets.token_hex(16)
        self.port = free_port()
        self._folder = folder
        self._conf = folder / "server.properties"
        self._conf.write_text(
            properties(
                {
                    "spark.master": "local[2]",
                    "spark.app.name": "server",
                    "spark.scheduler.mode": "FAIR",
                    "spark.ui.enabled": "false",
                    "spark.driver.host": HOST,
                    "spark.driver.bindAddress": HOST,
                    "spark.local.dir": str(folder / "local"),
                    "spark.sql.shuffle.partitions": "2",
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    "spark.connect.grpc.binding.address": HOST,
                    "spark.connect.grpc.binding.port": str(self.port),
                    **(conf or {}),
                }
            )
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"

    @property
    def master(self) -> str:
        """Its address, with the token."""
        return f"sc://{HOST}:{self.port}/;token={self.token}"

    def start(self) -> None:
        """Start it, and wait until it accepts calls."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting."""
        java = [str(find_java().command), "-Xmx768m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        java += ["-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={self._folder}"]
        java += [f"--add-opens={each}=ALL-UNNAMED" for each in JVM_OPENS]
        java += ["-cp", str(spark_home() / "jars" / "*"), "org.apache.spark.deploy.SparkSubmit"]
        java += ["--class", SERVICE, "--properties-file", str(self._conf), "spark-internal"]
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        known = {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": HOST}
        known["PYSPARK_PYTHON"] = self._python
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                tied(java),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**ours, **known, "SPARK_CONNECT_AUTHENTICATE_TOKEN": self.token},
            )

    def wait(self) -> None:
        """Wait until it accepts calls."""
        assert self._process is not None
        late = time.monotonic() + SECONDS
        while True:
            assert self._process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < late, self.log.read_text()[-4000:]
            try:
                socket.create_connection((HOST, self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
