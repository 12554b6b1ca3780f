# pyright: reportPrivateUsage=false
"""An engine whose JVMs are there in name only: what its owner does is seen without a Spark."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.embedded.jvm import JvmGateway
from fairlead.runtime.pipeline.engines.engine import EngineState


class HangingEngine(Embedded):
    """Is warm as soon as it is open, and answers until it hangs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, cores=1)
        self._jvms = 0
        self._answers = threading.Event()

    def hang(self) -> None:
        """Answer nothing until it is killed."""
        self._answers.clear()

    def open(self) -> None:
        with self._changed:
            self._jvms += 1
            self._gateway = JvmGateway(self._jvms, "s")
            for state in (EngineState.WARMING, EngineState.WARM):
                self._set_state(state, f"JVM {self._jvms}")
        self._answers.set()

    def is_responsive(self) -> bool:
        self._answers.wait()
        return True

    def new_gateway(self) -> Any:
        return SimpleNamespace(place=self.gateway, close=lambda: None)

    def end_group(self, group: str) -> None:
        """Run no jobs."""

    def kill(self, why: str = "") -> None:
        with self._changed:
            self._gateway = None
            self._set_state(EngineState.DOWN, why)
