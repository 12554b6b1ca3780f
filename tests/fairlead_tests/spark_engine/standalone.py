"""A cluster of Spark's own kind, one master and one worker, from the installed package."""

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from fairlead.actors.transport.ports import free_port
from fairlead.runtime.pipeline.engines.java import JVM_OPENS, spark_home
from fairlead.runtime.pipeline.engines.settings import properties
from fairlead.runtime.processes.java import find_java

HOST = "127.0.0.1"
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
"""How a JVM starts at the least cost."""
DEPLOY = "org.apache.spark.deploy"


class Standalone:
    """Its daemons ask for a secret; the worker's executors do not see what lies in `hidden`."""

    def __init__(self, folder: Path, *, cores: int, memory: str, hidden: Path | None) -> None:
        self.secret = secrets.token_hex(16)
        self.master = f"spark://{HOST}:{free_port()}"
        self._folder = folder
        self._conf = folder / "daemons.properties"
        self._conf.touch(0o600)
        self._conf.write_text(
            properties(
                {
                    "spark.authenticate": "true",
                    "spark.authenticate.secret": self.secret,
                    "spark.network.crypto.enabled": "true",
                    "spark.master.rest.enabled": "false",
                    "spark.network.crypto.saslFallback": "false",
                }
            )
        )
        self._processes: list[subprocess.Popen[bytes]] = []
        port = self.master.rpartition(":")[2]
        self._start("master", "I have been elected leader", ["--port", port])
        work = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / "work")]
        hide = f'mount -t tmpfs none {hidden} && exec "$@"'
        within = ["unshare", "--mount", "sh", "-c", hide, "sh"] if hidden else []
        self._start("worker", "Successfully registered with master", [*work, self.master], within)

    def executors(self) -> list[psutil.Process]:
        """The executors that run now."""
        worker = psutil.Process(self._processes[-1].pid)
        return [each for each in worker.children(recursive=True) if each.name() == "java"]

    def pythons(self) -> list[psutil.Process]:
        """The Python processes of the executors that run now."""
        found = [each.children(recursive=True) for each in self.executors()]
        return [process for each in found for process in each]

    def logs(self) -> list[Path]:
        """What daemons and executors have written."""
        return [*self._folder.glob("*.log"), *self._folder.rglob("std*")]

    def close(self) -> None:
        """End the daemons, and with the worker its executors."""
        left = [psutil.Process(each.pid) for each in self._processes]
        left += [child for each in left for child in each.children(recursive=True)]
        for each in self._processes:
            each.send_signal(signal.SIGKILL)
            each.wait()
        for process in left:
            if process.is_running():
                process.kill()
        psutil.wait_procs(left, timeout=60)

    def _start(
        self, name: str, says: str, options: Sequence[str], within: Sequence[str] = ()
    ) -> None:
        log = self._folder / f"{name}.log"
        java = [str(find_java().command), "-Xmx256m", *SHORT_LIVED]
        java += [f"--add-opens={each}=ALL-UNNAMED" for each in JVM_OPENS]
        java += ["-cp", str(spark_home() / "jars" / "*"), f"{DEPLOY}.{name}.{name.capitalize()}"]
        java += ["--host", HOST, "--webui-port", "0", "--properties-file", str(self._conf)]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*within, *java, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environ(),
            )
        self._processes.append(process)
        while says not in log.read_text():
            assert process.poll() is None, log.read_text()[-4000:]
            time.sleep(0.05)


def _environ() -> Mapping[str, str]:
    """Return the environment of a daemon, which its executors have, too."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    # The scripts that start daemons otherwise find out the version, for want of which none starts.
    (core,) = (spark_home() / "jars").glob("spark-core_*.jar")
    scala = core.name.removeprefix("spark-core_").partition("-")[0]
    home = {"SPARK_HOME": str(spark_home()), "SPARK_SCALA_VERSION": scala}
    return {**ours, **home, "SPARK_LOCAL_IP": HOST}
