"""Levels of loggers that are set while processes run."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.actors.transport import log_levels
from fairlead.actors.transport.log_levels import LevelSet, LoggerState, LogLevelsRead, ReadLogLevels
from fairlead_tests.actor_system import Running, eventually
from fairlead_tests.actors_transport.probe_actors import Create, Echo, Parent

ASK = 30.0
NOW = 1_700_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of logs; this process has its own levels again afterwards."""
    root = logging.root.level
    yield tmp_path
    log_levels.forget(tmp_path)
    log_levels.apply(tmp_path)
    logging.root.setLevel(root)


def levels(folder: Path) -> dict[str, LoggerState]:
    return {name: each for name, each in log_levels.loggers(folder).items() if name[:2] == "l."}


def test_a_level_counts_for_all_below_and_those_set_there_are_forgotten(folder: Path) -> None:
    for name in ("l.a", "l.a.b", "l.ab"):
        logging.getLogger(name)
    log_levels.write(folder, "l.a.b", "TRACE", NOW)
    log_levels.write(folder, "l.a", "OFF", NOW + 1)
    log_levels.apply(folder)
    before = logging.getLevelName(logging.root.level).replace("WARNING", "WARN")
    assert levels(folder) == {
        "l.a": LoggerState("OFF", NOW + 1),
        "l.a.b": LoggerState("OFF", NOW + 1),
        "l.ab": LoggerState(before, None),
    }
    log_levels.write(folder, "l.a.b", "WARN", NOW + 2)
    log_levels.write(folder, "root", "ERROR", NOW + 3)
    log_levels.apply(folder)
    assert set(levels(folder).values()) == {LoggerState("ERROR", NOW + 3)}


def test_a_level_that_code_has_set_stays_unless_it_is_named(folder: Path) -> None:
    own = logging.getLogger("l.own")
    own.setLevel(logging.WARNING)
    for name, level in (("root", "DEBUG"), ("l.own", "ERROR")):
        assert own.level == logging.WARNING
        log_levels.write(folder, name, level, NOW)
        log_levels.apply(folder)
    assert own.level == logging.ERROR


def test_a_level_that_is_kept_outlives_the_node(folder: Path) -> None:
    log_levels.write(folder, "l.kept", "DEBUG", NOW, is_kept=True)
    log_levels.write(folder, "l.other", "DEBUG", NOW)
    log_levels.forget(folder)
    assert log_levels.read(folder) == {"l.kept": LevelSet("DEBUG", NOW, is_kept=True)}
    log_levels.write(folder, "l.kept", "INFO", NOW + 1)
    log_levels.forget(folder)
    assert log_levels.read(folder) == {}
    assert not (folder / log_levels.FILE).exists()


def test_a_file_that_nobody_can_read_sets_no_level(folder: Path) -> None:
    for content in (b"", b"[]", b'{"l.x": 5}', b'{"l.x": ["LOUD", 5]}'):
        (folder / log_levels.FILE).write_bytes(content)
        assert log_levels.read(folder) == {}


@pytest.mark.cluster
def test_processes_go_by_them_once_told_and_later_ones_from_their_start(
    actor_system: Running,
) -> None:
    system, folder = actor_system.system, actor_system.folder / "logs"
    parent = system.create(Parent)
    first = system.ask(parent, Create("first"), ASK)
    assert system.ask(first, "levels", ASK) == [logging.INFO] * 3
    log_levels.write(folder, "root", "WARN", NOW)
    log_levels.write(folder, "a", "DEBUG", NOW)
    assert system.ask(parent, ReadLogLevels(), ASK) == LogLevelsRead()
    told = [logging.WARNING, logging.DEBUG, logging.DEBUG]
    eventually(lambda: system.ask(first, "levels", ASK) == told, "the child goes by them")
    assert system.ask(system.ask(parent, Create("second"), ASK), "levels", ASK) == told
    assert system.ask(system.create(Echo, "another"), "levels", ASK) == told
