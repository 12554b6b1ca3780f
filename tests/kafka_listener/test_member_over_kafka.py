"""The example of a member in any language: it computes, works beside a worker, and it may die."""

import ast
import importlib.util
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.kafka_listener.example_member import EXAMPLE, Example
from fairlead_tests.kafka_listener.node import ListenerNode

ALL = {"numbers", "numbers-0", "numbers-1", "numbers-2", "numbers-3"}
OURS = ""
"""How the member is called by its url: it has none."""


def test_the_example_is_short_and_imports_nothing_but_the_standard_library() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 200
    nodes = [*ast.walk(ast.parse(text))]
    imported = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


def test_a_member_whose_fence_is_near_waits_no_longer_for_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = importlib.util.spec_from_file_location("member", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    waits: list[float] = []

    def nobody_accepts(_: object, timeout: float) -> None:
        waits.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(example.socket, "create_connection", nobody_accepts)
    member = example.KafkaMember("127.0.0.1", 9, "connect")
    member.fence_at = time.monotonic() + 1.0
    with pytest.raises(TimeoutError):
        member.beat(full=True)
    member.owned.add(("A", 0))
    with pytest.raises(TimeoutError):
        member.beat(full=True)
    member.fence_at = 0.0
    with pytest.raises(TimeoutError):
        member.beat(full=True)
    without_work, with_work, late = waits
    assert without_work == 5.0
    assert 0.0 < with_work <= 1.0
    assert 0.0 < late <= 0.2


@pytest.mark.cluster
def test_a_member_over_kafka_shares_work_with_a_worker_and_loses_it_when_it_dies(
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
        node.put("numbers", 4)

        def is_shared() -> bool:
            held, ours = node.held(), first.runs()
            return bool(ours) and held[OURS] == ours and held["w1"] == ALL - ours

        eventually(is_shared, "both have work")
        assert "numbers" not in first.runs(), "connectors go to others"
        computed = [int(each[1]) for each in first.said() if each[0] == "computed"]
        assert computed == sorted({*computed}), "each target was computed once"
        assert computed[-1] == node.group().assignment_epoch
        first.dies()
        eventually(lambda: node.held() == {"w1": ALL}, "its session has ended")
        second = Example(listener.port, tmp_path / "second")
        ended.callback(second.dies)
        eventually(lambda: len(second.runs()) > 0, "another has work")
        second.leaves()
        assert second.runs() == set()
        eventually(lambda: node.held() == {"w1": ALL}, "it has left", seconds=3)
