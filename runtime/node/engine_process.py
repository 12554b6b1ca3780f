"""The engine process of a node, as the node's first process starts it and keeps it running.

There is one where the workers of a node share one JVM: it owns the JVM, and outlives workers and
their supervisor.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict

from ..cluster.spec import NodeSpec
from .processes import ProcessFiles
from .tied_process import TiedProcess


class EngineProcess(TiedProcess):
    """Owns the JVM that the workers share; told by its input what to run, which may be secret."""

    kind = "engine"
    name = "shared"
    title = "engine"

    def __init__(self, files: ProcessFiles, node: NodeSpec) -> None:
        """Take what the node runs, and where its processes are told of."""
        super().__init__(("-m", "fairlead.runtime.node.engine"), files, node)
        self._brief = json.dumps(
            {
                "group": node.group_id,
                "data_dir": str(node.data_dir),
                "engine": asdict(node.engine),
                "paths": node.reach.paths,
                "answer_timeout_ms": node.answer_timeout_ms,
                "backoff_ms": [node.backoff_ms.first, node.backoff_ms.longest],
                "log_level": node.log_level,
            }
        ).encode()

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - no shell
        if process.stdin is None:
            raise AssertionError("Popen was asked for a pipe")
        try:
            with process.stdin as told:
                told.write(self._brief)
        except BrokenPipeError:
            pass  # it has ended already, and is looked after
        return process
