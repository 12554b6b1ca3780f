"""One node in a separate process, as with `fairlead up` but without REST.

It is told what to run in one line of JSON, says "ready" when the group takes commands, and
runs until a signal ends it.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Backoff
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import AssignorSpec, EngineSpec, NodeSpec, WorkerTraits
from fairlead.runtime.node.launcher.actor_system import NodeFailedError
from fairlead.runtime.node.launcher.launcher import Launcher
from fairlead_tests.system_process import watch_files

FAILED = 1


def spec(order: dict[str, Any]) -> NodeSpec:
    """The node of an order; times in milliseconds."""
    return NodeSpec(
        data_dir=Path(order["data_dir"]),
        group_id="connect",
        place="127.0.0.1:8083",
        workers=tuple(order["workers"]),
        settings=GroupSettings(
            session_timeout_ms=order["session_ms"],
            heartbeat_interval_ms=order["heartbeat_ms"],
            max_delay_ms=order["delay_ms"],
            retry_backoff_ms=order["retry_ms"],
            initial_delay_ms=0,
            least_classic_session_ms=1_000,
        ),
        timing=Timing(
            order["heartbeat_ms"], order["session_ms"], order["rebalance_ms"], order["margin_ms"]
        ),
        engine=EngineSpec("noop"),
        backoff_ms=Backoff(order["backoff_ms"], order["backoff_max_ms"]),
        answer_timeout_ms=order["answer_ms"],
        server_assignor=order["assignor"],
        instance=order["instance"],
        traits=WorkerTraits(classic_mode=order["classic_mode"]),
        assignors=AssignorSpec(
            tuple(order["assignors"]), order["assignor_conf"], order["assignor_memory"]
        ),
    )


def main() -> int:
    """Run the node."""
    order = json.loads(sys.stdin.readline())
    watch_files(Path.cwd().resolve())
    node = spec(order)
    folder = RunFolder(node.data_dir)
    folder.claim()
    launcher = Launcher(node, folder, 0)
    try:
        launcher.start("http://127.0.0.1:8083")
        os.write(1, b"ready\n")
        launcher.watch()
    except NodeFailedError as error:
        os.write(1, f"failed: {error}\n".encode())
        return FAILED
    finally:
        launcher.stop()
        folder.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
