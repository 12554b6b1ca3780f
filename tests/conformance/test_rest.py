"""Connect's REST as it was recorded from the real one, played against one node of two workers.

The conversations are those of `rest.yaml`, the judge is `run_rest.py`, which lie together in the
conformance folder. "Where it differs from Connect" in docs/from-kafka-connect.md says which steps
are answered otherwise on purpose: all others pass.
"""
# pyright: basic

import json
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import launch, without_remains
from fairlead_tests.conformance.chosen import conformance_dir
from fairlead_tests.conformance.outcomes import LEFT_OUT
from fairlead_tests.conformance.rest_player import (
    Step,
    left_out,
    play_all,
    play_alone,
    read_player,
)
from fairlead_tests.pages import DOCS

pytestmark = pytest.mark.spark

AT_ONCE = 8
"""How many conversations are held at the same time."""

ONE_BY_ONE = ("loggers", "loggers-root")
"""Conversations that would get into each other's way."""

_ROW = re.compile(r"^\| ((?:[a-z-]+ [\d, -]+(?:; )?)+) \|", re.MULTILINE)


def differing() -> set[Step]:
    """The steps that the page for users of Connect says are answered otherwise."""
    page = (DOCS / "from-kafka-connect.md").read_text()
    _, _, told = page.partition("## Where it differs from Connect")
    return {
        step for row in _ROW.findall(told) for part in row.split("; ") for step in steps_in(part)
    }


def steps_in(text: str) -> Iterator[Step]:
    """Read `name-long 4-6, 8`."""
    name, _, numbers = text.strip().partition(" ")
    for part in numbers.split(", "):
        first, _, last = part.partition("-")
        yield from (Step(name, number) for number in range(int(first), int(last or first) + 1))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the node has its files, and the conversations theirs."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def url(home: Path) -> Iterator[str]:
    """The REST interface of a node with two workers, each with a Spark."""
    with without_remains() as nodes:
        settings = (f"data.dir={home / 'data'}", "workers=2", "listeners=http://127.0.0.1:0")
        script = [sys.executable, "-m", "fairlead_tests.cluster.up_process", "up", *settings]
        nodes.append(node := Node(home, launch(home, script)))
        for pipe in (node.launcher.stdin, node.launcher.stdout):
            assert pipe is not None
            pipe.close()
        eventually(lambda: " is up with " in (home / "stderr").read_text(), "the node is up")
        note = home / "data" / "run" / "node.json"
        yield json.loads(note.read_text())["rest"]


def test_every_step_is_answered_as_connect_does_but_for_those_that_the_page_names(
    url: str,
    home: Path,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    folder = conformance_dir(pytestconfig)
    if not (folder / "rest.yaml").exists():
        pytest.skip(f"{folder} holds no rest.yaml; set --conformance-dir")
    with (
        read_player(folder, url, home / "outside") as player,
        ThreadPoolExecutor(AT_ONCE) as threads,
    ):
        for name, why in left_out(player).items():
            record_property(LEFT_OUT, f"conversation {name}, which {why}")
        told = play_all(player, threads, ONE_BY_ONE)
        allowed = differing()
        # What others make and delete moves work meanwhile, which is UNASSIGNED for a moment.
        moved = {each.step.scenario for each in told if each.step not in allowed}
        again = play_alone(player, moved)
    assert told
    wrong = [each for each in again if each.step not in allowed]
    assert not wrong, "\n".join(map(str, wrong))
    assert differing() <= {each.step for each in told}, "what passes differs no more"
