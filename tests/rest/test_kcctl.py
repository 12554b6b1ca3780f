"""What kcctl asks, command by command, and what it is to be answered.

`kcctl.json` was recorded from kcctl at the commit 4381ff6, all of whose commands succeeded: each
request, the status of its answer, and the members of the answer with their kinds.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import FinishStop
from fairlead.runtime.interfaces.rest.routes.connectors import lifecycle

RECORDED = Path(__file__).with_name("kcctl.json").read_text()
DEMANDED = {(2, 3), (2, 5), (3, 0), (3, 2), (3, 5), (3, 6), (3, 7)}
"""The versions of Connect that kcctl asks for before it sends certain requests."""
KINDS: dict[str, type | tuple[type, ...]] = {"text": str, "number": int, "boolean": bool}


def flaws(wanted: Any, told: Any, at: str) -> Iterator[str]:
    """Yield where an answer lacks a member that kcctl was told, or has it as another kind."""
    if isinstance(wanted, dict):
        each = wanted.get("<each>")
        members = dict.fromkeys(told, each) if each else wanted
        yield from (f"{at}.{name} is missing" for name in members.keys() - told.keys())
        for name in members.keys() & told.keys():
            yield from flaws(members[name], told[name], f"{at}.{name}")
    elif isinstance(wanted, list):
        if bool(told) < bool(wanted):
            yield f"{at} is empty"
        for number, each in enumerate(told if wanted else ()):
            yield from flaws(wanted[0], each, f"{at}.{number}")
    elif wanted is not None and told is not None and not isinstance(told, KINDS[wanted]):
        yield f"{at} is {told!r}"


def go_on(api: RestApi, command: str) -> None:
    """Let the group do what workers did while kcctl was not there."""
    if command.startswith("apply -f flights.json") and "--dry-run" not in command:
        api.group.ask("settle")
        api.group.ask("split", "flights", {"task": "0"}, {"task": "1"})
        api.group.ask("settle")
    elif command.startswith("stop"):
        api.group.ask("settle")
        api.group.ask("carry_out", FinishStop("flights"))


def test_each_command_of_kcctl_is_answered_as_when_it_succeeded(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "START_SECONDS", 0.0)  # nobody runs what is restarted
    (api.data_dir / "in").mkdir()
    api.group.ask("seat", "w1")
    recorded = RECORDED.replace("${IN}", str(api.data_dir / "in"))
    found: list[str] = []
    for each in json.loads(recorded.replace("${OUT}", str(api.data_dir / "out"))):
        for asked in each["requests"]:
            body = json.dumps(asked["body"]) if "body" in asked else None
            headers = {"accept": "application/json"}
            headers |= {"content-type": "application/json"} if body else {}
            answer = api.client.request(
                asked["method"], asked["path"], content=body, headers=headers
            )
            at = f"{each['command']}: {asked['method']} {asked['path']}"
            if answer.status_code != asked["status"]:
                found.append(f"{at}: {answer.status_code} {answer.text}")
            elif asked["answer"] != "":
                found += flaws(asked["answer"], answer.json(), at)
        go_on(api, each["command"])
    assert found == []


def test_kcctl_finds_the_version_that_each_of_its_commands_needs(api: RestApi) -> None:
    major, minor = api.client.get("/").json()["version"].split(".")[:2]
    assert max(DEMANDED) <= (int(major), int(minor))
