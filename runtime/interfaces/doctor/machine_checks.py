"""Checks of the machine's facts against what a node needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...processes.open_files import ENOUGH, SPARK_NEEDS
from .findings import Finding, fail, ok, warn
from .machine import UNLIMITED, MachineFacts

MIB: Final = 1 << 20
NODE_BYTES: Final = 250 * MIB
"""What a node's processes take beside its workers and JVMs."""
WORKER_BYTES: Final = 65 * MIB
JVM_BYTES: Final = 300 * MIB
"""What a JVM takes beside its heap: code, classes, threads."""
THREADS_OF_NODE: Final = 60
THREADS_OF_WORKER: Final = 15
THREADS_OF_JVM: Final = 250
FEW_FILES: Final = 4_096
"""With fewer open files, connectors that read many files at once may fail."""
MOST_MAPS: Final = 65_530
"""The default of vm.max_map_count."""
NEVER: Final = 2
"""The value of vm.overcommit_memory at which a reserved page counts as a used one."""


@dataclass(frozen=True, slots=True)
class NodeNeeds:
    """The size of a node by its settings, as its machine feels it."""

    workers: int
    jvms: int
    heap: int
    """Of each JVM, in bytes."""

    @property
    def memory(self) -> int:
        """How many bytes the node takes, with full heaps."""
        jvms = self.jvms * (self.heap + JVM_BYTES)
        return NODE_BYTES + self.workers * WORKER_BYTES + jvms

    @property
    def threads(self) -> int:
        """How many threads the node has, which count as processes."""
        jvms = self.jvms * THREADS_OF_JVM
        return THREADS_OF_NODE + self.workers * THREADS_OF_WORKER + jvms


def check_machine(facts: MachineFacts, needs: NodeNeeds) -> Iterator[Finding]:
    """Yield a finding about each limit of the machine."""
    yield _check_user(facts)
    yield _check_open_files(facts, needs)
    yield _check_processes(facts, needs)
    yield from _check_memory(facts, needs)
    yield from _check_cores(facts, needs)
    yield from _check_clock(facts)
    yield from _check_kernel(facts)


def _check_user(facts: MachineFacts) -> Finding:
    if facts.user:
        return ok("user", f"a node runs as user {facts.user}, and needs no more rights")
    return warn(
        "user",
        "this is root: plugins and queries of connectors would have all rights on this machine",
        "useradd --system --home-dir /var/lib/fairlead fairlead",
    )


def _check_open_files(facts: MachineFacts, needs: NodeNeeds) -> Finding:
    text = f"a process may have {_number(facts.open_files)} files open (nofile)"
    mend = f"prlimit --pid $$ --nofile={ENOUGH}"  # by root: it is a hard limit
    if needs.jvms and facts.open_files < SPARK_NEEDS:
        return fail("open-files", f"{text}, and Spark needs {SPARK_NEEDS} or more", mend)
    if facts.open_files < FEW_FILES:
        return warn("open-files", f"{text}; {ENOUGH} are enough for any node", mend)
    return ok("open-files", text)


def _check_processes(facts: MachineFacts, needs: NodeNeeds) -> Finding:
    text = (
        f"{_number(facts.processes)} processes and threads are allowed, this node has up to"
        f" {needs.threads}"
    )
    mend = f"prlimit --pid $$ --nproc={2 * needs.threads}"
    if facts.processes < needs.threads:
        return fail("processes", text, mend)
    if facts.processes < 2 * needs.threads:
        return warn("processes", text, mend)
    return ok("processes", text)


def _check_memory(facts: MachineFacts, needs: NodeNeeds) -> Iterator[Finding]:
    most = min(facts.memory, facts.memory_limit)
    whose = "the control group allows" if facts.memory_limit < facts.memory else "the machine has"
    text = f"{whose} {_mib(most)} of memory, this node takes up to {_mib(needs.memory)}"
    mend = "fairlead up --set workers=1 --set spark.heap=512m"
    if most < needs.memory:
        yield fail("memory", f"{text}: a process of it would be killed", mend)
    elif min(most, facts.memory_available) < needs.memory:
        free = _mib(facts.memory_available)
        yield warn("memory", f"{text}, and others leave {free}: it would swap", mend)
    else:
        yield ok("memory", text)


def _check_cores(facts: MachineFacts, needs: NodeNeeds) -> Iterator[Finding]:
    limit = facts.cores_limit
    if needs.jvms and limit is not None and limit < facts.cores:
        cores = max(1, int(limit))
        yield warn(
            "cores",
            f"the control group allows the time of {limit:g} cores, and Spark would use"
            f" {facts.cores} at once: it is stopped for a part of each 100 ms",
            f"fairlead up --set spark.master=local[{cores}]",
        )
    else:
        yield ok("cores", f"{facts.cores} cores may be used")


def _check_clock(facts: MachineFacts) -> Iterator[Finding]:
    if facts.is_synchronised is False:
        yield warn(
            "clock",
            f"no time server keeps this clock right (zone {facts.zone}): times in logs and"
            " certificates, and waits that outlive a restart, may be wrong",
            "timedatectl set-ntp true",
        )
    elif facts.is_synchronised:
        yield ok("clock", f"a time server keeps the clock right; the zone is {facts.zone}")
    else:
        yield ok("clock", f"the zone is {facts.zone}; the kernel does not say who sets the clock")


def _check_kernel(facts: MachineFacts) -> Iterator[Finding]:
    if facts.shared_memory is None:
        yield warn(
            "shared-memory",
            "there is no /dev/shm to write to: `fairlead simulate` uses the disk",
            "mount -t tmpfs -o size=256m tmpfs /dev/shm",
        )
    if facts.sysctls.get("vm.overcommit_memory") == NEVER:
        yield warn(
            "sysctl",
            "vm.overcommit_memory is 2: what JVMs and logs reserve counts as used memory, and"
            " they may not start",
            "sysctl -w vm.overcommit_memory=0",
        )
    maps = facts.sysctls.get("vm.max_map_count", MOST_MAPS)
    if maps < MOST_MAPS:
        yield warn(
            "sysctl",
            f"vm.max_map_count is {maps}: a JVM with many threads may end",
            f"sysctl -w vm.max_map_count={MOST_MAPS}",
        )


def _number(limit: int) -> str:
    return "any number of" if limit >= UNLIMITED else str(limit)


def _mib(size: int) -> str:
    return f"{size // MIB:,} MiB"
