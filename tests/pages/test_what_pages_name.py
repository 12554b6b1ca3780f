"""Whatever the pages name is there: keys, settings, commands, calls, metrics, files."""

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from pages.reference import key_tables, metrics, operations, setting_rows

from fairlead.runtime.config.connect_worker import is_otherwise, is_taken
from fairlead.runtime.interfaces.cli.catalogue import VERBS
from fairlead.runtime.interfaces.cli.main import load_verb
from fairlead.runtime.pipeline.connectors.plugin_pipeline import PluginPipeline
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.keys.common import CONNECTOR_CLASS
from fairlead.runtime.pipeline.spi.keys.plugin_sink import OWN_KEYS, has_two_plugins
from fairlead_tests.pages import (
    BY_HAND,
    HOUSE,
    blocks_in,
    codes_in,
    commands_in,
    first_cells_in,
    name_of,
)

DOTTED = re.compile(r"(\.?[a-z][\w-]*(?:\.[\w*<>$-]+)+)(?:[=:] ?.*)?")
"""A key or a setting, perhaps with a value."""
FAMILIES = (
    "source.option.",
    "sink.option.",
    "spark.conf.spark.",
    "task.restart.",
    "spark.conf.*",
    "errors.*",
)
"""How names begin that are of a family, which has no list."""
OF_SPARK = {
    "spark.authenticate",
    "spark.driver.extraClassPath",
    "spark.master.rest.enabled",
    "spark.network.crypto.enabled",
    "spark.scheduler.mode",
}
"""Settings of a cluster's own Spark."""
BESIDE_A_SOURCE = {
    f"sink.{key}" for key in ("connector.class", "topics", "topics.regex", "transforms")
}
"""Keys of Connect's sinks, as they stand beside the keys of a plugin that is the source."""
OF_EXAMPLES = {"source.database", "source.table", "member.input", "member.output"}
"""Keys of the type in `deploy/sqlite`, and of the worker in `deploy/member-over-kafka`."""
WORDS = {"VERB"}
"""What stands for a verb."""
by_hand = pytest.mark.parametrize("page", BY_HAND, ids=name_of)


@cache
def names() -> dict[str, set[str]]:
    """Return the defaults of each key and setting; NAME is that of a transform or a predicate."""
    found: dict[str, set[str]] = {}
    for name, _, usual, _ in (
        *setting_rows(),
        *(row for rows in key_tables().values() for row in rows),
    ):
        plain = re.sub(r"<\w+>", "NAME", name)
        found.setdefault(plain, set()).add("" if usual == "required" else usual)
    return found


def is_known(name: str) -> bool:
    """Tell whether a key or a setting is there; a leading dot continues a prefix."""
    if name.startswith("."):
        return any(is_known(f"{end}{name}") for end in ("source", "sink", "source.value.converter"))
    own = re.sub(r"^(transforms|predicates)\.(?!NAME)[\w<>]+\.", r"\1.NAME.", name)
    own = re.sub(r"^(transforms\.NAME\.(?:lookup|expect))\.\w+", r"\1.NAME", own)
    is_of_worker = is_taken(name) or is_otherwise(name)
    return (
        own in names()
        or is_of_worker
        or name in OF_SPARK | OF_EXAMPLES | BESIDE_A_SOURCE
        or name.startswith(FAMILIES)
    )


def configs_in(page: Path) -> Iterator[dict[str, str]]:
    """Yield the configs on a page, and what is part of one."""
    for block in blocks_in(page):
        text = "\n".join(re.findall(r"<<'YAML'\n(.*?)^YAML$", block.text, re.MULTILINE | re.DOTALL))
        if block.language in {"yaml", "json"} or text:
            config = yaml.safe_load(text or block.text)
            pairs = {"name": "x", **config["config"]} if "config" in config else config
            yield {key: str(value) for key, value in pairs.items()}


def passed_on(page: Path) -> set[str]:
    """Return what a config may pass on to others, which tests/connectors/test_reach.py compares."""
    section = page.read_text().partition("## What a config may pass on")[2].partition("\n## ")[0]
    return set(re.findall(r"`([^`]+)`", section))


@by_hand
def test_every_key_and_every_setting_is_one(page: Path) -> None:
    first = {name.partition(".")[0] for name in names()}
    named = (match[1] for code in codes_in(page) if (match := DOTTED.fullmatch(code)))
    named = (each for each in named if each[0] == "." or each.partition(".")[0] in first)
    keys = [*named, *(key for config in configs_in(page) for key in own_keys(config))]
    assert {key for key in keys if not is_known(key)} - passed_on(page) == set()


def own_keys(config: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys of a config that are fairlead's: others are a plugin's of Connect."""
    found = find_plugins().of({CONNECTOR_CLASS: SparkPipeline.full_name, **config})
    is_plugins = found.made_by is PluginPipeline
    if has_two_plugins(config):
        return (each for each in config if each in OWN_KEYS)
    return (each for each in config if not is_plugins or each.startswith("sink."))


@by_hand
def test_every_config_is_valid(page: Path) -> None:
    for config in configs_in(page):
        if "connector.class" in config and config.get("source.type") != "sqlite":
            validation = find_plugins().of(config).made_by.validate(config)
            assert (validation.errors, validation.remarks) == ({}, ()), config


def test_a_key_with_a_value_in_a_table_has_its_default() -> None:
    cells = [cell for page in BY_HAND for cell in first_cells_in(page)]
    shown = [each for cell in cells for each in re.findall(r"`([a-z][\w.]*)=([^`]*)`", cell)]
    assert len(shown) > 40
    assert [each for each in shown if each[1] not in names().get(each[0], {each[1]})] == []


def words_of(command: str) -> list[str]:
    """Return the words of a command, up to where a shell goes on with another."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|>;&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|>;&"):
            break
        words.append(word)
    return words


def check_verb(words: list[str]) -> None:
    """Parse a command line as the program does; raises `click.UsageError` if it is none."""
    words = [each for each in words if "<<" not in each]
    if not words or words[0] in WORDS or words[0].startswith("-"):
        return
    command = load_verb(words.pop(0))
    while isinstance(command, click.Group) and words:
        command = command.commands[words.pop(0)]
    if isinstance(command, click.Group):
        return
    with command.make_context("fairlead", words, resilient_parsing="--help" in words):
        pass


@by_hand
def test_every_command_of_fairlead_is_one(page: Path) -> None:
    wrong: dict[str, str] = {}
    for command in commands_in(page):
        words = words_of(command)
        if "fairlead" not in words or words[0] in {"pip", "curl"}:
            continue
        try:
            check_verb(words[words.index("fairlead") + 1 :])
        except click.MissingParameter:
            pass  # a sentence names the verb alone
        except (click.UsageError, KeyError) as error:
            wrong[command] = str(error)
    assert wrong == {}


@by_hand
def test_what_is_installed_and_made_is_there(page: Path) -> None:
    project = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^([\w-]+):", (HOUSE / "Makefile").read_text(), re.MULTILINE)
    for command in commands_in(page):
        words = words_of(command)
        if words[0] == "make":
            assert {each for each in words[1:] if each.islower()} <= {*targets}, command
        for extras in re.findall(r"pip install '[\w.-]*\[([\w,-]+)\]'", command):
            assert {*extras.split(",")} <= {*project["optional-dependencies"]}, command
        for place in (each for each in words if re.match(r"(\./)?(tests|deploy)/", each)):
            assert (HOUSE / place).exists(), command


@cache
def calls() -> set[tuple[str, str]]:
    """Return the method and the path of each call, with a word for each parameter."""
    return {(method.upper(), path) for path, method, _ in operations()}


def is_call(method: str, path: str) -> bool:
    """Tell whether a call is one; an ellipsis stands for the beginning of a path."""
    shown = re.escape(path.partition("?")[0]).replace("…", ".*")
    return any(
        method in {"", known}
        and (re.fullmatch(shown, each) or re.fullmatch(re.sub(r"\{\w+\}", "[^/{]+", each), path))
        for known, each in calls()
    )


@by_hand
def test_every_call_of_rest_is_one(page: Path) -> None:
    wrong: list[str] = []
    for code in codes_in(page):
        call = re.fullmatch(r"(?:(GET|PUT|POST|PATCH|DELETE) )?((?:/|…/)[\w{}…/.?=-]*)", code)
        is_path = call and (call[1] or not Path(call[2]).suffix) and not call[2].startswith("/data")
        if call and is_path and call[2] not in OTHER_PATHS and not is_call(call[1] or "", call[2]):
            wrong.append(code)
    for command in commands_in(page):
        for method, path in re.findall(r"^curl -X (\w+) localhost:8083(\S+)", command):
            wrong += [] if is_call(method, path) else [command]
    assert wrong == []


OTHER_PATHS = {"/openapi.json"}
"""Paths that lead to no call of the document."""


@by_hand
def test_every_metric_is_one(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"\bfairlead_[a-z_]+(?![\w.])", text)) - {"fairlead_version"}
    known = {*metrics(), *(f"{each}_bucket" for each in metrics())}
    assert {each for each in named if each not in known} - NO_METRICS == set()


NO_METRICS = {"fairlead_published", "fairlead_tests", "fairlead_sqlite", "fairlead_together"}
"""A table of the PostgreSQL sink, and packages."""


@by_hand
def test_every_module_is_one(page: Path) -> None:
    kinds = "sources", "sinks", "connectors", "transforms", "assignors", "server_assignors"
    groups = {f"fairlead.{each}" for each in kinds}
    named = {code for code in codes_in(page) if re.fullmatch(r"fairlead(\.[a-z_]+)+", code)}
    assert {each for each in named - groups if not importlib.util.find_spec(each)} == set()


@by_hand
def test_every_program_in_python_compiles(page: Path) -> None:
    for block in blocks_in(page):
        if block.language == "python":
            compile(block.text, page, "exec")


def test_every_verb_is_on_the_page_of_the_command_line() -> None:
    named = {
        word
        for code in codes_in(HOUSE / "docs" / "operating" / "command-line.md")
        for word in re.findall(r"[a-z-]+", code)
    }
    assert {*VERBS} - named == set()
