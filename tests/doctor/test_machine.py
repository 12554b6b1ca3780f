"""What `doctor` says of a machine's limits, memory, cores, clock and kernel."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.runtime.interfaces.doctor.findings import Finding, Severity
from fairlead.runtime.interfaces.doctor.machine import MachineFacts, group_folders, read_machine
from fairlead.runtime.interfaces.doctor.machine_checks import NodeNeeds, check_machine

GIB = 1 << 30
SPARK = NodeNeeds(workers=2, jvms=1, heap=GIB)
NOOP = NodeNeeds(workers=2, jvms=0, heap=GIB)
SOUND = MachineFacts(
    user=1000,
    memory=8 * GIB,
    memory_available=6 * GIB,
    cores=4,
    shared_memory=GIB,
    sysctls={"vm.overcommit_memory": 0, "vm.max_map_count": 65_530},
    is_synchronised=True,
)


def findings(needs: NodeNeeds = SPARK, **changed: object) -> list[Finding]:
    return [*check_machine(replace(SOUND, **changed), needs)]  # type: ignore[arg-type]


def troubles(needs: NodeNeeds = SPARK, **changed: object) -> list[tuple[str, str, str, str]]:
    return [
        (str(each.level), each.check, each.text, each.mend)
        for each in findings(needs, **changed)
        if each.level is not Severity.OK
    ]


def test_a_sound_machine_has_no_trouble() -> None:
    assert troubles() == []
    assert [each.text for each in findings()] == [
        "a node runs as user 1000, and needs no more rights",
        "a process may have any number of files open (nofile)",
        "any number of processes and threads are allowed, this node has up to 340",
        "the machine has 8,192 MiB of memory, this node takes up to 1,704 MiB",
        "4 cores may be used",
        "a time server keeps the clock right; the zone is UTC",
    ]


LIMITED = {
    "root": ({"user": 0}, "warn", "user"),
    "too few files for Spark": ({"open_files": 300}, "fail", "open-files"),
    "few files": ({"open_files": 1024}, "warn", "open-files"),
    "too few threads": ({"processes": 100}, "fail", "processes"),
    "few threads": ({"processes": 400}, "warn", "processes"),
    "too little memory": ({"memory": GIB}, "fail", "memory"),
    "a group with too little": ({"memory_limit": GIB}, "fail", "memory"),
    "memory that others have": ({"memory_available": GIB}, "warn", "memory"),
    "a quota of cores": ({"cores_limit": 1.5}, "warn", "cores"),
    "a clock of its own": ({"is_synchronised": False}, "warn", "clock"),
    "no shared memory": ({"shared_memory": None}, "warn", "shared-memory"),
    "strict memory": ({"sysctls": {"vm.overcommit_memory": 2}}, "warn", "sysctl"),
    "few maps": ({"sysctls": {"vm.max_map_count": 100}}, "warn", "sysctl"),
}


@pytest.mark.parametrize(("changed", "level", "check"), LIMITED.values(), ids=LIMITED)
def test_each_limit_is_one_finding_with_a_command(
    changed: dict[str, object], level: str, check: str
) -> None:
    ((at, what, text, mend),) = troubles(SPARK, **changed)
    assert (at, what) == (level, check)
    assert text
    assert mend


def test_a_node_without_spark_needs_little() -> None:
    assert troubles(NOOP, open_files=4096, processes=200, memory=GIB, cores_limit=0.5) == []
    ((level, _, text, _),) = troubles(NOOP, open_files=300)
    assert (level, text) == (
        "warn",
        "a process may have 300 files open (nofile); 65536 are enough for any node",
    )


def test_spark_is_told_to_use_the_cores_of_the_quota() -> None:
    ((_, _, _, mend),) = troubles(cores_limit=2.5)
    assert mend == "fairlead up --set spark.master=local[2]"


def test_a_clock_that_the_kernel_hides_is_no_trouble() -> None:
    assert troubles(is_synchronised=None) == []


@pytest.mark.parametrize(
    ("lines", "folders"),
    [
        ("0::/a/b", ["a/b", "a", ""]),
        ("0::/", [""]),
        ("4:memory:/a\n1:cpu:/b", ["memory/a", "memory"]),
        ("3:cpu,memory:/", ["cpu,memory"]),
        ("", []),
    ],
)
def test_limits_of_all_control_groups_above_count(
    tmp_path: Path, lines: str, folders: list[str]
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(lines)
    groups = tmp_path / "sys/fs/cgroup"
    assert [*group_folders("memory", tmp_path)] == [groups / each for each in folders]


def test_this_machine_can_be_read() -> None:
    facts = read_machine()
    assert facts.memory > facts.memory_available > 0
    assert facts.cores > 0
    assert facts.now > 0
