"""Harsher faults of a node: of any process, of the wall clock, and of the disk of its sinks."""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from fairlead_tests.actor_system import title_of
from fairlead_tests.chaos.crew import Crew, frozen
from fairlead_tests.chaos.faults import CSV, JSON, RandomFaults
from fairlead_tests.chaos.line import Line

DISK_MIB = 512
SELDOM = ("restart", "kill node", "freeze", "freeze any")
"""Slow faults, with a quarter of the frequency of the others."""
PATIENCE_S = 240.0
JUMPS_S = (-315_360_000, -3_600, -60, -2, 0, 2, 60, 3_600, 315_360_000)
"""The possible offsets of the node's wall clock."""


class Disk:
    """A separate disk for the sinks, with a bind mount for each connector's output."""

    def __init__(self, folder: Path, sinks: Mapping[str, Path], mib: int = DISK_MIB) -> None:
        self._point = folder / "disk"
        self._sinks = sinks
        self._size = f"size={mib}m"
        self._point.mkdir(parents=True)
        tmpfs = ["mount", "-t", "tmpfs", "-o", self._size, "tmpfs"]
        subprocess.run([*tmpfs, self._point], check=True)
        for name, sink in sinks.items():
            self.folder(name).mkdir()
            sink.mkdir(parents=True)
            self.attach(name)

    def folder(self, name: str) -> Path:
        """Return the folder of a connector's rows on the disk, even if it is not mounted."""
        return self._point / name

    def attach(self, name: str) -> None:
        subprocess.run(["mount", "--bind", self.folder(name), self._sinks[name]], check=True)

    def detach(self, name: str) -> None:
        subprocess.run(["umount", "-l", self._sinks[name]], check=True)

    def beneath(self, name: str) -> list[Path]:
        """Return the content of the mount point while the disk is away."""
        return list(self._sinks[name].iterdir())

    def keep_full(self, seconds: float) -> None:
        """Keep the disk full for so long, also when others free space."""
        until = time.monotonic() + seconds
        ballast = self.fill()
        while time.monotonic() < until:
            time.sleep(0.2)
            ballast = self.fill()
        ballast.unlink()

    def fill(self) -> Path:
        """Fill the disk, except for space that others free meanwhile."""
        ballast = self._point / "ballast"
        with ballast.open("wb") as file, suppress(OSError):  # others may be faster
            while free := shutil.disk_usage(self._point).free:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
        return ballast

    def remount(self, mode: str) -> bool:
        """Make the disk read-only or writable; return False if it is busy."""
        told = f"remount,{mode},{self._size}"
        return subprocess.run(["mount", "-o", told, self._point], check=False).returncode == 0

    def close(self) -> None:
        """Remove all mounts."""
        for sink in self._sinks.values():
            subprocess.run(["umount", "-l", sink], check=False)
        subprocess.run(["umount", "-l", self._point], check=False)


class Clock:
    """The wall clock of a node's processes, but not of their JVMs."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set(0)

    def set(self, offset_s: int) -> None:
        """Set the offset of the clock at once."""
        new = self._file.with_suffix(".new")
        new.write_text(str(offset_s))
        new.rename(self._file)

    def environ(self) -> Mapping[str, str]:
        """Return the environment of processes that use this clock."""
        customized = str(Path(__file__).parent / "clock")
        return {**os.environ, "PYTHONPATH": customized, "CHAOS_CLOCK": str(self._file)}


class HarshFaults(RandomFaults):
    """Faults of any process, with clock jumps and disks that disappear and return."""

    longest_s = PATIENCE_S

    def __init__(
        self, crew: Crew, lines: Iterable[Line], dice: random.Random, disk: Disk, clock: Clock
    ) -> None:
        super().__init__(crew, lines, dice)
        self._disk = disk
        self._clock = clock
        self.events: Mapping[str, Callable[[], str]] = {
            **self.events,
            "unmount": self.unmount,
            "flap": self.flap,
            "fill": self.fill,
            "read-only": self.read_only,
            "kill any": self.kill_any,
            "freeze any": self.freeze_any,
            "restart": self.restart,
            "kill node": self.kill_node,
            "clock": self.set_clock,
        }

    def inject(self, name: str) -> None:
        """Inject a fault once the node accepts commands, as a joining worker asks only once."""
        self.crew.eventually(self.crew.answers, "the node takes commands")
        super().inject(name)

    def draw(self) -> str:
        """Choose the next fault."""
        weights = [1 if each in SELDOM else 4 for each in self.events]
        return self._dice.choices([*self.events], weights)[0]

    def unmount(self) -> str:
        """Unmount a sink for a while."""
        name = self._dice.choice([CSV, JSON])
        self._disk.detach(name)
        time.sleep(self._dice.uniform(0, 6))
        assert self._disk.beneath(name) == []
        self._disk.attach(name)
        return name

    def flap(self) -> str:
        """Unmount and mount a sink again and again."""
        times = self._dice.randint(3, 10)
        for _ in range(times):
            name = self._dice.choice([CSV, JSON])
            self._disk.detach(name)
            time.sleep(self._dice.uniform(0, 0.8))
            assert self._disk.beneath(name) == []
            self._disk.attach(name)
            time.sleep(self._dice.uniform(0, 0.8))
        return f"{times} times"

    def fill(self) -> str:
        """Fill the disk for a while."""
        ballast = self._disk.fill()
        time.sleep(self._dice.uniform(0, 8))
        ballast.unlink()
        return "the disk"

    def read_only(self) -> str:
        """Make the disk read-only for a while."""
        while not self._disk.remount("ro"):
            time.sleep(0.01)  # a file is just being written
        time.sleep(self._dice.uniform(0, 4))
        self._disk.remount("rw")
        return "the disk"

    def kill_any(self) -> str:
        """Kill any process but the launcher."""
        process = self._any()
        title = title_of(process) or process.name()
        process.kill()
        return title

    def freeze_any(self) -> str:
        """Suspend any process for a while."""
        process = self._any()
        with frozen(process.pid):
            time.sleep(self._dice.uniform(0, 12))
        return title_of(process) or process.name()

    def restart(self) -> str:
        """Restart the node gracefully."""
        self.guests.clear()
        self.crew.down()
        self.crew.up(workers=2)
        return "the node"

    def kill_node(self) -> str:
        """Kill the node's launcher, and start a new one."""
        self.guests.clear()
        self.crew.crash()
        time.sleep(self._dice.uniform(0, 2))
        self.crew.up(workers=2)
        return "the node"

    def set_clock(self) -> str:
        """Let the wall clock jump; sometimes restart the group after that."""
        offset_s = self._dice.choice(JUMPS_S)
        self._clock.set(offset_s)
        if self._dice.random() < 0.5:
            self.kill_group()
        return f"{offset_s:+d} s"

    def _any(self) -> psutil.Process:
        below = psutil.Process(self.crew.up_pid).children(recursive=True)
        named = [each for each in below if _is_of_node(each)]
        kind = self._dice.choice(sorted({_kind(each) for each in named}))
        return self._dice.choice([each for each in named if _kind(each) == kind])


def _kind(process: psutil.Process) -> str:
    return process.name() if process.name() == "java" else title_of(process).split()[1]


def _is_of_node(process: psutil.Process) -> bool:
    try:
        return title_of(process).startswith("fairlead: ") or process.name() == "java"
    except psutil.Error:
        return False
