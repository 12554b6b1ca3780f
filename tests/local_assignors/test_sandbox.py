"""What code of others finds in its process: settings of its own, and nothing of the node's."""

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead.actors.messages.assignors import DescribeAssignors, DescribeAssignorsReply, Worker
from fairlead.runtime.cluster.spec import AssignorSpec
from fairlead.runtime.node.assignors.sandbox import Sandbox, SandboxEndedError
from fairlead.runtime.processes.isolation import filter_environment
from fairlead_tests.actor_system import eventually, runs
from fairlead_tests.local_assignors.packages import ASSIGNOR, install

KEY = b"\x17the cluster's key, in this process \x03"
QUESTION = DescribeAssignors("m", Worker("w1", "localhost:8083/w1"), 7)


@contextmanager
def opened(site: Path, says: str) -> Generator[Sandbox]:
    """A sandbox whose assignor says a text of what it finds."""
    says = f"import os; return Metadata(0, 0, ({says}).encode())"
    source = ASSIGNOR.replace("return plain_metadata(worker)", says)
    install(site, source, "mine = shop_rules:Mine")
    sandbox = Sandbox(AssignorSpec(("mine",)), site / "assignor.log")
    try:
        assert sandbox.open() == ""
        yield sandbox
    finally:
        sandbox.end()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def told(sandbox: Sandbox) -> str:
    answer = sandbox.ask(QUESTION)
    assert isinstance(answer, DescribeAssignorsReply)
    assert (answer.number, answer.errors) == (7, ())
    return answer.assignors[0].metadata.decode()


def test_it_knows_where_things_are_and_no_secret_of_the_environment(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "FAIRLEAD_CLUSTER", "DATABASE_URL", "LC_ALL"):
        monkeypatch.setenv(name, "C")
    with opened(site, "' '.join(os.environ)") as sandbox:
        known = set(told(sandbox).split())
    assert {"PATH", "PYTHONPATH", "LC_ALL"} <= known
    assert known <= {*filter_environment(os.environ), "LC_CTYPE"}, (
        "Python may name its own spelling"
    )
    assert not {"AWS_SECRET_ACCESS_KEY", "FAIRLEAD_CLUSTER", "DATABASE_URL"} & known


def test_nothing_of_the_memory_of_who_started_it_is_in_its_own(site: Path) -> None:
    (site / "looking.py").write_text(LOOKING)
    with opened(site, "__import__('looking').found()") as sandbox:
        assert told(sandbox) == "0"
    here = dict[str, Any]()
    exec(LOOKING, here)  # the same look finds it here
    assert int(here["found"]()) >= 1


LOOKING = (
    f"""
KEY = {KEY[::-1]!r}
def found():
    return str(sum(each.count(KEY[::-1]) for each in memory()))
"""
    + """
def memory():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as file:
        for line in maps:
            place, access = line.split()[:2]
            if not access.startswith("rw"):
                continue
            start, end = (int(each, 16) for each in place.split("-"))
            try:
                file.seek(start)
                yield file.read(end - start)
            except OSError:
                pass
"""
)


@pytest.mark.parametrize(("level", "logged"), [("INFO", True), ("WARNING", False)])
def test_it_logs_from_the_level_that_whoever_asks_does(
    site: Path, caplog: pytest.LogCaptureFixture, level: str, logged: bool
) -> None:
    says = "__import__('logging').getLogger('shop').info('asked') or ''"
    with caplog.at_level(level), opened(site, says) as sandbox:
        assert told(sandbox) == ""
    assert ("INFO" in (site / "assignor.log").read_text()) is logged


def test_it_has_no_file_open_but_its_own(site: Path) -> None:
    with (
        (site / "open").open("w") as file,
        opened(
            site,
            "' '.join(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
            " if os.path.exists(f'/proc/self/fd/{n}'))",
        ) as sandbox,
    ):
        os.set_inheritable(file.fileno(), True)
        found = told(sandbox)
    assert str(site / "open") not in found
    assert found.count("socket:") + found.count("pipe:") == 1


def test_when_its_guard_is_killed_it_ends_and_who_asks_is_told(site: Path) -> None:
    with opened(site, "'nothing'") as sandbox:
        below = psutil.Process(sandbox.pid).children()
        assert len(below) == 1
        os.kill(sandbox.pid, signal.SIGKILL)
        eventually(lambda: not any(map(runs, below)), "it is gone")
        with pytest.raises(SandboxEndedError, match="ended"):
            sandbox.ask(QUESTION)
        assert sandbox.why_ended()


def test_the_stack_of_what_kept_it_from_loading_is_in_its_log(site: Path) -> None:
    install(site, "def look(): raise LookupError('no shop')\nlook()\n", "mine = shop_rules:Mine")
    sandbox = Sandbox(AssignorSpec(("mine",)), site / "assignor.log")
    try:
        assert "LookupError: no shop" in sandbox.open()
    finally:
        sandbox.end()
    told = (site / "assignor.log").read_text()
    assert "an assignor is refused\nTraceback" in told
    assert ", in look\n" in told


def test_who_takes_more_memory_than_it_may_is_told_so(site: Path) -> None:
    source = ASSIGNOR.replace("return plain_metadata(worker)", f"{HOARDS}; time.sleep(60)")
    install(site, source, "mine = shop_rules:Mine")
    sandbox = Sandbox(AssignorSpec(("mine",), {}, 128 << 20), site / "assignor.log")
    try:
        assert sandbox.open() == ""
        with pytest.raises(SandboxEndedError, match=r"assignor\.memory\.max, shared memory incl"):
            sandbox.ask(QUESTION)
        assert not sandbox.ended_by_itself
    finally:
        sandbox.end()


HOARDS = (
    "import mmap, time; kept = mmap.mmap(-1, 300 << 20);"
    " [kept.write(bytes([7]) * (1 << 20)) for _ in range(300)]"
)
