"""A process that opens one engine after another on Spark Connect servers, and prints the results.

It is given a folder; addresses come by its input, a line each, since they may hold a token. gRPC
looks for authorities once in a process, so whoever trusts others is another process.
"""

import json
import sys
from pathlib import Path

from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.engines.executors.cluster import SparkCluster


def main() -> None:
    """Open each engine, and run a job if that succeeds."""
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        engine = ConnectEngine(folder / "worker", SparkCluster(line.strip(), (folder,)))
        engine.open()
        engine.wait_warm(180)
        told = {"state": engine.state.value, "detail": engine.detail}
        if engine.state is EngineState.WARM:
            told["rows"] = str(engine.run("job", lambda spark: spark.range(3).count()))
        engine.close(20)
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
