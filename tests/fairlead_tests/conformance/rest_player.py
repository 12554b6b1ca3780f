"""Plays recorded REST conversations, several at once, by the player that lies beside them."""
# pyright: basic

import sys
from argparse import Namespace
from collections.abc import Collection, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CLASS = "SparkPipeline"


class Step(NamedTuple):
    """A step of a conversation; steps count from 1."""

    scenario: str
    number: int


class Difference(NamedTuple):
    """A step whose response differs from the recorded one."""

    step: Step
    verdict: str
    lines: tuple[str, ...]


@contextmanager
def read_player(folder: Path, url: str, place: Path, class_name: str = CLASS) -> Generator[Any]:
    """Yield the folder's own `Player` of its `rest.yaml`, which uses one node as both workers.

    The files that connectors read and write are in `place`.
    """
    path = folder / "run_rest.py"
    spec = spec_from_file_location("run_rest", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = before
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load((folder / "rest.yaml").read_text(), loader)
    args = Namespace(
        base_url=[url, url], cls=class_name, has=[], config=[], timeout=100, patience=90, open=False
    )
    player = module.Player(args, document)
    player.tmp.rmdir()
    player.tmp = place
    try:
        yield player
    finally:
        player.close()


def play_all(
    player: Any,
    threads: Executor,
    one_by_one: Collection[str],
) -> list[Difference]:
    """Play all conversations but those of `left_out`; return the differences."""
    unplayed = left_out(player)
    chosen = [each for each in player.document["scenarios"] if each["name"] not in unplayed]
    at_once = [each for each in chosen if each["name"] not in one_by_one]
    played = [*threads.map(lambda one: _play(player, one), at_once)]
    played += [_play(player, each) for each in chosen if each["name"] in one_by_one]
    return [each for found in played for each in found]


def left_out(player: Any) -> dict[str, str]:
    """Return the conversations that the class does not support, each with what it lacks."""
    found = dict[str, str]()
    for each in player.document["scenarios"]:
        if each.get("only_told"):
            found[each["name"]] = "is told only"
        elif lacking := sorted(set(each.get("needs") or ()) - player.caps):
            found[each["name"]] = f"needs {', '.join(lacking)}"
    return found


def play_alone(player: Any, names: Collection[str]) -> list[Difference]:
    """Play some conversations one after another; return the differences."""
    chosen = [each for each in player.document["scenarios"] if each["name"] in names]
    return [each for scenario in chosen for each in _play(player, scenario)]


def _play(player: Any, scenario: dict[str, Any]) -> list[Difference]:
    names, found = player.names_for(scenario), list[Difference]()
    try:
        for number, step in enumerate(scenario["steps"], 1):
            verdict, lines, _ = player.play(step, names)
            if verdict != "PASS":
                found.append(Difference(Step(scenario["name"], number), verdict, tuple(lines)))
            if verdict == "FAIL" and step.get("must"):
                break
    finally:
        player.clean(scenario, names)
    return found
