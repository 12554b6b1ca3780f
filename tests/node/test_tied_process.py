"""A program beside the actors of a node is started again when it ends, and when it cannot start."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from fairlead.actors.backoff import Backoff
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.processes import ProcessFiles
from fairlead.runtime.node.tied_process import TiedProcess


class Program(TiedProcess):
    """Ends at once; the machine has no process left for its second start."""

    kind, name, title = "program", "program", "program"
    starts = 0

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        self.starts += 1
        if self.starts == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return subprocess.Popen(command)


def test_a_program_that_cannot_be_started_at_this_moment_is_tried_again(tmp_path: Path) -> None:
    node = NodeSpec(
        *(tmp_path, "connect", "here", ("w1",), GroupSettings(), Timing(), EngineSpec("noop")),
        backoff_ms=Backoff(1, 1),
    )
    program = Program(("-c", "pass"), ProcessFiles(tmp_path / "run"), node)
    program.start()
    while program.starts < 3:
        program.look_after()
        time.sleep(0.001)
    program.stop()
