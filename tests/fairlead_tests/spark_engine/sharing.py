# pyright: reportPrivateUsage=false
"""A node's engine process, supervised as by the launcher, and processes that share it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.timing import Backoff
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.node.launcher.launcher import EngineProcess
from fairlead.runtime.node.process_files import ProcessFiles
from fairlead_tests import TESTS

SHARER = TESTS / "fairlead_tests" / "spark_engine" / "sharer.py"


class SharerProcess:
    """A process that shares the JVM, and its output."""

    def __init__(self, place: Path, name: str, signs: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SHARER), str(place), name, str(signs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )

    def tell(self, job: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{job}\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, job: str) -> Any:
        self.tell(job)
        return self.hear()


class SharedNode:
    """The engine process of a folder; its sharers by name, started when they are asked for."""

    def __init__(self, folder: Path, signs: Path, conf: Mapping[str, str]) -> None:
        self.folder, self.signs = folder, signs
        (folder / "run").mkdir(mode=0o700, parents=True)
        self._tied = EngineProcess(
            ProcessFiles(folder / "run"),
            NodeSpec(
                data_dir=folder,
                group_id="shared",
                place="here",
                workers=(),
                settings=GroupSettings(),
                timing=Timing(),
                engine=EngineSpec("spark", 2, "512m", conf, is_shared=True),
                backoff_ms=Backoff(100, 1_000),
                answer_timeout_ms=2_000,
            ),
        )
        self._tied.start()
        self._sharers: dict[str, SharerProcess] = {}

    @property
    def socket(self) -> Path:
        return RunFolder(self.folder).engine

    @property
    def owner(self) -> psutil.Process:
        assert self._tied._process is not None
        return psutil.Process(self._tied._process.pid)

    def jvm(self) -> psutil.Process:
        (jvm,) = (each for each in self.owner.children() if each.name() == "java")
        return jvm

    def sharer(self, name: str) -> SharerProcess:
        """Return a sharer that is warm."""
        there = self._sharers.get(name)
        if there is not None and there.process.poll() is not None:
            there.process.communicate()
            there = None
        if there is None:
            there = self._sharers[name] = SharerProcess(self.socket, name, self.signs)
        assert there.ask("warm")[0] == "warm"
        return there

    def restart(self) -> None:
        """Wait until the owner has been restarted."""
        before = self._tied._process

        def is_new() -> bool:
            self._tied.look_after()
            return self._tied._process is not before

        until(is_new)

    def close(self) -> None:
        for each in self._sharers.values():
            each.process.communicate(timeout=60)
        self._tied.stop()


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds; only the test's timeout limits it."""
    while not holds():
        time.sleep(0.02)
