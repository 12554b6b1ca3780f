"""The engine process, which owns the shared JVM: `python -m fairlead.runtime.node.engine`.

It reads its configuration from stdin, since settings of Spark may be secret and a command line is
not. It ends with the process that started it, or on SIGTERM. Its log is `logs/engine.log` in the
data folder; the output of the JVM is in `cache/spark/shared/logs` there.
"""

import json
import logging
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from setproctitle import setproctitle

from ....actors.timing import Backoff
from ....actors.transport import log_levels
from ....actors.transport.log_format import LogOutput
from ...cluster.data_version import VersionSkewError, require_version_of_node
from ...cluster.engine_state import log_change, state_of
from ...cluster.node_files import EngineFile, engine_file, spark_folder, write_engine
from ...cluster.run_folder import RunFolder
from ...config.references.redaction import Redaction
from ...pipeline.engines.embedded.engine import Embedded
from ...pipeline.engines.executors.cluster import SparkCluster
from ...pipeline.engines.shared.owner import JvmOwner
from ...processes.liveness import Silence

EXIT_FAILED: Final = 1
LOOK_SECONDS: Final = 0.1
LEVELS_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 3.0


def main() -> int:
    """Run the JVM until SIGTERM or the end of the parent; return the exit code."""
    brief: Mapping[str, Any] = json.load(sys.stdin)
    setproctitle(f"fairlead: engine {brief['group']}")
    has_to_end = False

    def end(*_: object) -> None:
        nonlocal has_to_end
        has_to_end = True

    signal.signal(signal.SIGTERM, end)
    data_dir, redaction = Path(brief["data_dir"]), Redaction()
    try:
        _log_to(data_dir / "logs" / "engine.log", LogOutput(**brief["log"]), redaction)
        require_version_of_node(data_dir)
        engine = make_engine(data_dir, brief, redaction)
        owner = make_owner(engine, data_dir, brief, redaction)
        owner.open()
    except (OSError, VersionSkewError) as error:
        sys.stderr.write(f"the engine process cannot start: {error}\n")
        return EXIT_FAILED
    levels_at, last = 0.0, None
    while not has_to_end:
        owner.look()
        if (told := view(engine, owner)) != last:
            log_change(last, told)
            write_engine(engine_file(RunFolder(data_dir).path), told)
            last = told
        if time.monotonic() >= levels_at:
            log_levels.apply(data_dir / "logs")
            levels_at = time.monotonic() + LEVELS_SECONDS
        time.sleep(LOOK_SECONDS)
    owner.close(CLOSE_SECONDS)
    return 0


def view(engine: Embedded, owner: JvmOwner) -> EngineFile:
    """Return the state of the JVM, for `engine.json`."""
    return state_of(engine, owner.restarts)


def make_engine(data_dir: Path, brief: Mapping[str, Any], redaction: Redaction) -> Embedded:
    """Return the engine whose JVM the workers share; it is not open yet."""
    spec = brief["engine"]
    return Embedded(
        spark_folder(data_dir, "shared"),
        cores=spec["cores"],
        heap=spec["heap"],
        conf=spec["conf"],
        hide=redaction.hide,
        cluster=SparkCluster.of(spec["master"], brief["paths"]),
    )


def make_owner(
    engine: Embedded, data_dir: Path, brief: Mapping[str, Any], redaction: Redaction
) -> JvmOwner:
    """Return the owner of a node's JVM; nothing is started yet."""
    limit_s = brief["answer_timeout_ms"] / 1000
    return JvmOwner(
        engine,
        RunFolder(data_dir).engine,
        redaction.learn,
        lambda: Silence(limit_s, time.monotonic()),
        Backoff(*brief["backoff_ms"]),
    )


def _log_to(file: Path, output: LogOutput, redaction: Redaction) -> None:
    output.begin(file)
    # At INFO, py4j logs each connection.
    logging.getLogger("py4j").setLevel(max(logging.WARNING, logging.root.level))
    redaction.watch_logs()


if __name__ == "__main__":
    sys.exit(main())
