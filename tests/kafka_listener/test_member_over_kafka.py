"""The examples of workers in any language: each line once, whichever process dies or freezes.

A writer appends lines to files all the while. Two members of one make run the connector beside a
worker of the node: one is killed, the other one is frozen beyond its session. So are killed the
worker, and the process of the group. A third member takes over what they had. The frozen one goes
on where it was: it commits under a token that is not of now, or notices by its clock that it is
late.
"""

import ast
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import Resource, RunState
from fairlead.events.records import TaskStatus
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.kafka_listener.example_member import EXAMPLES, PYTHON, Example, compiled
from fairlead_tests.kafka_listener.node import ListenerNode

MOST_LINES = {"member.py": 250, "Worker.java": 400}
"""So many lines of code each example has at most; blank ones, comments and braces are none."""
NO_CODE = ("#", "//", "/*", "*", "import ", "from ")
BRACES = {"", "}", "};", "}));"}
FILES = 8
LINES = {Resource("lines"), Resource("lines", 0), Resource("lines", 1)}
CONFIG = {
    "name": "lines",
    "connector.class": "MemberConnector",
    "tasks.max": "2",
    "placement.tags": "lines",
}
OWN = {"numbers", "numbers-0", "numbers-1"}
"""What the worker of the node runs."""
OURS = ""
"""How members are called by their urls: they have none."""
needs_java = pytest.mark.skipif(shutil.which("javac") is None, reason="there is no javac")


def lines_of_code(path: Path) -> int:
    """Return how many lines are neither blank nor a comment; docstrings count as comments."""
    text = path.read_text()
    other = set[int]()
    for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            other.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = [each.strip() for at, each in enumerate(text.splitlines(), 1) if at not in other]
    return sum(each not in BRACES and not each.startswith(NO_CODE) for each in lines)


@pytest.mark.parametrize(("name", "most"), MOST_LINES.items())
def test_the_examples_are_short(name: str, most: int) -> None:
    assert lines_of_code(EXAMPLES / name) <= most


def test_the_example_imports_nothing_but_the_standard_library() -> None:
    nodes = [*ast.walk(ast.parse((EXAMPLES / "member.py").read_text()))]
    imported = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


class Writer:
    """Appends lines to files, each another one, until it is told to stop.

    Offsets outlive a connector: files of another test have other names.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self._name = name
        self._folder, self._stops, self.written = folder, Event(), 0
        self._thread = Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._stops.wait(0.01):
            for number in range(FILES):
                with (self._folder / f"{self._name}-{number}.txt").open("a") as file:
                    file.write(f"{self.written}\n")
                self.written += 1

    def ends(self) -> None:
        """Write nothing more."""
        self._stops.set()
        self._thread.join()


def rows_in(folder: Path) -> Counter[str]:
    """Return how often each line is in the output."""
    return Counter(row for path in folder.glob("*.txt") for row in path.read_text().splitlines())


@contextmanager
def working(listener: ListenerNode) -> Generator[Node]:
    """Run a worker of the node and a connector of its own, and remove all that is there then."""
    node = Node(listener.folder.parent, listener.process)
    try:
        node.add("w1")
        node.put("numbers", 2)
        yield node
        for each in ("numbers", "lines"):
            node.delete(each)
        eventually(lambda: node.held() == {"w2": set()}, "all is deleted")
        node.remove("w2")
        eventually(lambda: node.held() == {}, "the worker has left")
    finally:
        node.hang_up()
        node.forget_log()


def is_shared(node: Node, first: Example, second: Example) -> bool:
    """Return whether two examples run the connector, and their statuses name them."""
    if not first.runs() or not second.runs() or node.held().get("w1") != OWN:
        return False
    members = {each.member_id for each in node.group().members.values()}
    states = {each.state for each in statuses(node)}
    return (
        first.runs() | second.runs() == set(map(str, LINES))
        and {each.worker for each in statuses(node)} <= members
        and states == {RunState.RUNNING}
    )


def statuses(node: Node) -> list[TaskStatus]:
    """Return the statuses of the connector and its tasks."""
    logged = node.group().statuses
    return [logged[each] for each in sorted(LINES) if each in logged]


def rises(rows: Callable[[], Counter[str]]) -> None:
    """Wait until there are more rows than now."""
    before = len(rows())
    eventually(lambda: len(rows()) > before, "they go on")


@pytest.mark.cluster
@pytest.mark.parametrize(
    "name", ["member.py", pytest.param("Worker.java", marks=[needs_java, pytest.mark.soak])]
)
def test_each_line_counts_once_whoever_dies_or_freezes(
    listener: ListenerNode, tmp_path: Path, name: str
) -> None:
    program = PYTHON if name == "member.py" else compiled(tmp_path / "classes")
    rows = partial(rows_in, tmp_path / "out")
    folders = {"member.input": str(tmp_path / "in"), "member.output": str(tmp_path / "out")}

    def start(name: str) -> Example:
        example = Example(listener.port, tmp_path / name, program=program)
        ended.callback(example.dies)
        return example

    with ExitStack() as ended, working(listener) as node:
        writer = Writer(tmp_path / "in", name)
        ended.callback(writer.ends)
        first, second = start("first"), start("second")
        node.command(PutConnector(GROUP, "lines", {**CONFIG, **folders}))
        eventually(lambda: is_shared(node, first, second), "both run it, and nothing else")
        node.hit("group connect")
        node.hit("worker w1")
        node.add("w2")
        rises(rows)
        frozen, killed = (first, second) if "lines-0" in first.runs() else (second, first)
        frozen.freezes()
        killed.dies()
        third = start("third")
        eventually(lambda: third.runs() == set(map(str, LINES)), "it has taken over")
        frozen.goes_on()
        eventually(lambda: "lost everything" in frozen.text(), "it is no member any more")
        assert frozen.leaves() == 0
        writer.ends()
        eventually(lambda: len(rows()) == writer.written, "all is read")
        assert rows() == Counter(map(str, range(writer.written)))
        assert (third.leaves(), third.runs()) == (0, set())
        assert {each.state for each in statuses(node)} == {RunState.UNASSIGNED}
        eventually(lambda: node.held() == {"w2": OWN}, "they have left")


@pytest.mark.cluster
def test_a_member_that_computes_shares_work_with_a_worker_and_loses_it_when_it_dies(
    listener: ListenerNode, tmp_path: Path
) -> None:
    with ExitStack() as ended:
        node = Node(listener.folder.parent, listener.process)
        ended.callback(node.hang_up)
        ended.callback(node.forget_log)
        first = Example(listener.port, tmp_path / "first")
        ended.callback(first.dies)
        eventually(lambda: node.held().keys() == {OURS}, "it has joined")
        node.add("w1")
        eventually(lambda: node.held().keys() == {OURS, "w1"}, "a worker has joined")
        node.put("numbers", 2)

        def is_shared() -> bool:
            held, ours = node.held(), first.runs()
            return bool(ours) and held[OURS] == ours and held["w1"] == OWN - ours

        eventually(is_shared, "both have work")
        assert "numbers" not in first.runs(), "connectors go to others"
        computed = [int(each[1]) for each in first.said() if each[0] == "computed"]
        assert computed == sorted({*computed}), "each target was computed once"
        assert computed[-1] == node.group().assignment_epoch
        first.dies()
        eventually(lambda: node.held() == {"w1": OWN}, "its session has ended")
        node.delete("numbers")
        node.remove("w1")
        eventually(lambda: node.held() == {}, "all is deleted")
