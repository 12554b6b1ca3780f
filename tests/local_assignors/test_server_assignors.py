"""Server assignors of users: found by name, and run in a sandbox of the process with the groups."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path

import pytest

from fairlead.actors.group.computing.compute import run_assignor
from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.computing import Snapshot
from fairlead.events.model import Resource
from fairlead.runtime.cluster.spec import AssignorSpec
from fairlead.runtime.node.assignors import serving
from fairlead.runtime.node.assignors.discovery import known_server_assignors
from fairlead.runtime.node.assignors.serving import ServerAssignors, find_servers
from fairlead_tests.decider import Decider
from fairlead_tests.local_assignors.packages import install

GROUP = "fairlead.server_assignors"
SOURCE = """
import os, time

class Works:
    def __init__(self, conf):
        self.conf = conf
    def assign(self, group):
        return Assignment({self.conf["taker"]: group.configured})

class Raises(Works):
    def assign(self, group):
        raise ValueError("no luck")

class Nonsense(Works):
    def assign(self, group):
        return {}

class Exits(Works):
    def assign(self, group):
        os._exit(3)

class Hangs(Works):
    def assign(self, group):
        time.sleep(3600)
"""
POINTS = tuple(f"{each.lower()} = shop_rules:{each}" for each in
               ("Works", "Raises", "Nonsense", "Exits", "Hangs"))  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    site = tmp_path_factory.mktemp("site")
    install(site, SOURCE, *POINTS, group=GROUP)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(site), *sys.path])
        patched.setenv("PYTHONPATH", str(site))
        invalidate_caches()
        yield site


@pytest.fixture(scope="module")
def servers(site: Path) -> Iterator[ServerAssignors]:
    spec = AssignorSpec(("balanced",), {"taker": "W1"})
    servers = find_servers(spec, site / "assignor.log")
    yield servers
    servers.close()


@pytest.fixture
def snapshot() -> Snapshot:
    decider = Decider()
    decider.configure("A B")
    decider.join("W1")
    return snapshot_of(decider.group, "works", 0)


Computes = Callable[[str], tuple[object, str]]


@pytest.fixture
def compute(servers: ServerAssignors, snapshot: Snapshot) -> Computes:
    def run(name: str) -> tuple[object, str]:
        return run_assignor(name, servers.by_name()[name], replace(snapshot, assignor=name))

    return run


def test_those_of_installed_distributions_are_known_by_name(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, SOURCE, "uniform = shop_more:Works", "works = shop_more:Works", dist="shop-more",
            module="shop_more", group=GROUP)  # fmt: skip
    assert sorted(known_server_assignors()) == ["exits", "hangs", "nonsense", "raises", "works"]
    assert [each.getMessage().partition(" is left out: ")[2] for each in caplog.records] == [
        "a server assignor of that name is built in",
        "another distribution has one of that name",
    ]


def test_one_gives_what_is_configured_with_the_settings_of_the_node(compute: Computes) -> None:
    assignment, error = compute("works")
    assert error == ""
    assert getattr(assignment, "members", None) == {"W1": {Resource("A"), Resource("B")}}


@pytest.mark.parametrize(
    ("name", "seconds", "why"),
    [
        ("raises", 60.0, "assignor raises: ValueError: no luck (shop_rules.py, line 16)"),
        ("nonsense", 60.0, "assignor nonsense: WrongResultError: assign returned of type dict"),
        ("exits", 60.0, "its process ended (without an answer)"),
        ("hangs", 1.5, "it took more than 1.5 s"),
    ],
)
def test_a_failure_says_why_and_the_next_computation_works(
    compute: Computes, monkeypatch: pytest.MonkeyPatch, name: str, seconds: float, why: str
) -> None:
    assert compute("works")[1] == ""
    monkeypatch.setattr(serving, "SECONDS", seconds)
    assignment, error = compute(name)
    assert (assignment, error[: len(why) + len(f"{name}: AssignorFailed: ")]) == (
        None,
        f"{name}: AssignorFailed: {why}",
    )
    monkeypatch.setattr(serving, "SECONDS", 60.0)
    assert compute("works")[1] == ""
