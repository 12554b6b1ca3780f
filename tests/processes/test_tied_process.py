"""A program beside the actors of a node is started again when it ends, and when it cannot start."""

import subprocess
import time
from collections.abc import Sequence

from fairlead.actors.timing import Backoff
from fairlead.events.log.process import ProcessId
from fairlead.runtime.processes.tied import TiedProcess


class Program(TiedProcess):
    """Ends at once; the machine has no process left for its second start."""

    title = "program"
    starts = 0

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        self.starts += 1
        if self.starts == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return subprocess.Popen(command)


def test_a_program_that_cannot_be_started_at_this_moment_is_tried_again() -> None:
    recorded: list[ProcessId] = []
    program = Program(("-c", "pass"), recorded.append, Backoff(1, 1))
    program.start()
    while program.starts < 3:
        program.look_after()
        time.sleep(0.001)
    program.stop()
    assert program.starts == len(recorded) + 1 == 3
