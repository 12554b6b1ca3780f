"""Configs are opened for the runner; what they led to is in nothing that leaves it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from threading import Thread

import pytest

from fairlead.events.model import Resource, Resources, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.config.secrets import Vault
from fairlead.runtime.node.worker.spark_runner import DecryptingRunner
from fairlead.runtime.pipeline.tasks.reports import (
    Report,
    StatusChanged,
    TaskConfigsChanged,
    Warned,
)

VAULT = Vault(bytes(range(32)))
TOKEN = Token(3, 1)
RESOURCE = Resource("a")
ENV, FILE, SEALED = "env-s3cret/1", "file-s3cret/2", "sealed-s3cret/3"


class Telltale:
    """Runs nothing, and tells whatever it was given."""

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report

    def start(self, launch: Launch) -> None:
        config = launch.connector_config
        text = " and ".join(config.values())
        first, rest = text[:10], text[10:]
        self._report(Warned(RESOURCE, TOKEN, f"odd: {text}"))
        self._report(StatusChanged(RESOURCE, TOKEN, RunState.FAILED, text, f"{first}\n  {rest}"))
        part = {"user": config["url"].partition("@")[0], "url": config["url"]}
        self._report(TaskConfigsChanged("a", TOKEN, (part,)))

    def stop(self, resource: Resource) -> None: ...
    def turn(self, resource: Resource, target_state: RunState) -> None: ...
    def abandon(self) -> None: ...
    def wake(self) -> None: ...
    def running(self) -> Resources:
        return frozenset()

    def close(self, seconds: float) -> Resources:  # noqa: ARG002
        return frozenset()


def test_what_references_and_seals_lead_to_leaves_a_runner_in_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f.properties"
    file.write_text(f"password={FILE}\n")
    monkeypatch.setenv("USER_OF_A", ENV)
    stored = {
        "url": f"${{env:USER_OF_A}}:${{file:{file}:password}}@host",
        "token": VAULT.seal("a", SEALED),
    }
    told: list[Report] = []
    runner = DecryptingRunner(VAULT, told.append, Telltale)
    runner.start(Launch(RESOURCE, TOKEN, stored, stored))
    warned, failed, split = told
    shown = f"{stored['url']} and ********"
    assert warned == Warned(RESOURCE, TOKEN, f"odd: {shown}")
    assert isinstance(failed, StatusChanged)
    assert failed.reason == shown
    assert not any(secret in repr(told) for secret in (ENV, FILE, SEALED))
    assert isinstance(split, TaskConfigsChanged)
    assert split.configs[0]["url"] == stored["url"]
    assert VAULT.unseal("a", split.configs[0]["user"]) == f"{ENV}:{FILE}"


def test_a_launch_and_a_split_of_its_connector_are_taken_one_after_the_other() -> None:
    runner = DecryptingRunner(VAULT, lambda _: None, Telltale)
    config = {"url": "a@b", "token": "t"}
    runner._lock.acquire()  # as a report does while it uses the launches
    start = Thread(target=runner.start, args=(Launch(RESOURCE, TOKEN, config, config),))
    start.start()
    start.join(0.2)
    assert start.is_alive()
    assert runner._sealed == {}
    runner._lock.release()
    start.join(60)
    assert not start.is_alive()
    assert runner._sealed["a"].connector_config == config


class Host:
    """Resolves `${file:…}` itself, and has looked something up."""

    def providers_for(self, config: Mapping[str, str]) -> Collection[str]:
        return ("file",) if config else ()

    def secrets_of(self, connector: str) -> Mapping[str, str]:
        return {FILE: "${file:f:password}"} if connector == "a" else {}


def test_what_a_host_resolves_is_left_to_it_and_sealed_in_task_configs() -> None:
    stored = {"url": "${file:f:password}@host", "token": VAULT.seal("a", SEALED)}
    seen = list[Report]()

    class Splitting(Telltale):
        def start(self, launch: Launch) -> None:
            assert launch.connector_config == {**stored, "token": SEALED}
            own = {"url": launch.connector_config["url"], "login": f"me:{FILE}", "plain": "p"}
            self._report(TaskConfigsChanged("a", TOKEN, (own,)))

    runner = DecryptingRunner(VAULT, seen.append, Splitting, hosted=Host())
    runner.start(Launch(RESOURCE, TOKEN, stored, stored))
    (split,) = seen
    assert isinstance(split, TaskConfigsChanged)
    (own,) = split.configs
    login = VAULT.seal("a", f"me:{FILE}")
    assert own == {"url": stored["url"], "login": login, "plain": "p"}
