"""A client that is generated from `/openapi.json` plays every operation."""

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_type_hints

import httpx
import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import FinishStop
from fairlead.events.model import Resource, RunState
from fairlead.runtime.cluster.messages import ProcessView
from fairlead_tests.rest.client import HERE, Client

GENERATED = "generated_fairlead_client"
CONFIG = {
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "sink.format": "parquet",
    "tasks.max": 2,
    "source.header": True,
}
PATH = {
    "connector": "A",
    "task": 0,
    "group": "connect",
    "worker": "w1",
    "epoch": "latest",
    "file": "index.html",
    "resource": "A-0",
    "plugin": "SparkPipeline",
    "logger": "root",
}
"""What stands in paths."""
REFUSED = {"put_task_configs": 400, "fence_zombies": 400, "reset_topics": 403, "delete_group": 409}
REFUSED |= {"move_owner": 400}  # the log of the group is on one host
REFUSED |= {"read_sample": 400}  # by a node without an engine
REFUSED |= {
    "get_state": 503,
    "get_state_history": 503,
    "follow_events": 503,
    "get_connector_history": 503,
}  # nothing follows the logs here
REFUSED |= {"list_dead_letters": 404, "export_dead_letters": 404}  # the config has no queue
REFUSED |= {"retry_dead_letters": 409}  # as above
REFUSED |= {"get_lag": 404}  # the group has workers, and no clients of Kafka
"""The operations that are answered with an error here, and its status."""
OF_A_STOPPED_ONE = {"alter_offsets", "reset_offsets"}
"""These are asked of connector B, which is created as STOPPED."""
AT_THE_END = ["stop", "reset_offsets", "alter_offsets", "remove_worker", "delete_connector"]
"""After these others would be refused, so they come last, in this order."""


class Operation(NamedTuple):
    """One operation: its function, the statuses that are described, and those without a body."""

    name: str
    tag: str
    described: set[str]
    silent: set[str]


class Sent(httpx.BaseTransport):
    """Passes the requests of the generated client to the application."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, and return the answer."""
        path = str(request.url).removeprefix(HERE)
        headers = {**request.headers, "accept": "application/json", "accept-encoding": "identity"}
        answer = self._client.request(request.method, path, content=request.read(), headers=headers)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture
def generated(
    api: RestApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The package of the client."""
    (tmp_path / "openapi.json").write_bytes(api.client.get("/openapi.json").content)
    overrides = {"application/x-ndjson": "text/plain"}
    settings = {"post_hooks": [], "content_type_overrides": overrides}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    command = [str(Path(sys.executable).with_name("openapi-python-client")), "generate"]
    command += ["--path", str(tmp_path / "openapi.json"), "--meta", "none", "--fail-on-warning"]
    command += ["--config", str(tmp_path / "config.json")]
    command += ["--output-path", str(tmp_path / "client" / GENERATED)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    monkeypatch.syspath_prepend(str(tmp_path / "client"))
    yield importlib.import_module(f"{GENERATED}.client")
    for name in [each for each in sys.modules if each.partition(".")[0] == GENERATED]:
        del sys.modules[name]


def operations(document: dict[str, Any]) -> Iterator[Operation]:
    for methods in document["paths"].values():
        for told in methods.values():
            responses = told["responses"]
            silent = {status for status in responses if "content" not in responses[status]}
            tag = told["tags"][0].replace(" ", "_").replace("-", "_")
            yield Operation(told["operationId"], tag, {*responses}, silent)


def body_of(hint: Any, given: object) -> Any:
    """Return a body as the client's own type for it."""
    kinds = [each for each in (hint, *get_args(hint)) if hasattr(each, "from_dict")]
    kind = next(each for each in kinds if each.__name__ != "Unset")
    return kind.from_dict(given)


def play(client: Any, operation: Operation, bodies: dict[str, Any]) -> Any:
    """Send one operation by its function; return what the client made of the answer."""
    module = importlib.import_module(f"{GENERATED}.api.{operation.tag}.{operation.name}")
    asked = inspect.signature(module.sync_detailed).parameters
    given: dict[str, Any] = {name: PATH[name] for name in asked if name in PATH}
    if operation.name in OF_A_STOPPED_ONE:
        given["connector"] = "B"
    if "group" in asked and asked["group"].default is not inspect.Parameter.empty:
        del given["group"]  # of all groups
    if "body" in asked:
        hint = get_type_hints(module.sync_detailed)["body"]
        given["body"] = body_of(hint, bodies[operation.name])
    return module.sync_detailed(client=client, **given)


@pytest.fixture
def told(api: RestApi) -> RestApi:
    """A group with a connector of two tasks on two workers, one of which has failed."""
    group = api.group
    (api.data_dir / "rest.log").write_text("2026-01-01 10:00:00,000 INFO 1 a: b\n")
    (source := api.data_dir / "in").mkdir()
    (source / "a.csv").write_text("a\n1\n")
    config = {**CONFIG, "source.path": str(source), "sink.path": str(api.data_dir / "out")}
    group.ask("seat", "w1")
    assert api.client.put("/connectors/A/config", json=config).status_code == 201
    group.ask("settle")
    group.ask("split", "A", {"task": "0"}, {"task": "1"})
    group.ask("seat", "w2")
    group.ask("report", Resource("A", 0), RunState.FAILED, "no such column")
    group.ask("commit", Resource("A", 1), 0, 10, 9)
    api.gateway.workers = (ProcessView("w1", 4711, "127.0.0.1:8083/w1", "running", 0, ""),)
    return api


def test_a_generated_client_plays_every_operation(told: RestApi, generated: ModuleType) -> None:
    document = told.client.get("/openapi.json").json()
    config = {
        **CONFIG,
        "source.path": str(told.data_dir / "in"),
        "sink.path": str(told.data_dir / "out"),
    }
    bodies: dict[str, Any] = {
        "create_connector": {
            "name": "B",
            "initial_state": "STOPPED",
            "config": {**config, "sink.path": str(told.data_dir / "other")},
        },
        "put_config": config,
        "patch_config": {"tasks.max": 3},
        "validate_config": config,
        "diff_config": config,
        "apply_configs": {"connectors": [{"name": "A", "config": config}], "dry_run": True},
        "read_sample": {"name": "A", "config": config},
        "set_level": {"level": "INFO"},
        "put_group_config": {"group.max.size": 9},
        "patch_group_config": {"group.max.size": None},
        "plan": {"add_workers": 1},
        "alter_offsets": {
            "offsets": [
                {"partition": {"path": str(told.data_dir / "in" / "a.csv")}, "offset": None}
            ]
        },
        "seek_offsets": {"to": "earliest", "dry_run": True},
        "roll_back": {},
        "place_connector": {"weight": 2},
        "place_task": {"weight": 2},
        "expect": {"within_ms": 1000},
    }
    client = generated.Client(base_url=HERE)
    client.set_httpx_client(httpx.Client(base_url=HERE, transport=Sent(told.client)))
    found = {each.name: each for each in operations(document)}
    order = [name for name in found if name not in AT_THE_END] + AT_THE_END
    assert {*order} == {*found}
    wrong: dict[str, str] = {}
    for name in order:
        answer = play(client, found[name], bodies)
        if name == "create_connector":
            told.group.ask("carry_out", FinishStop("B"))
        status = str(int(answer.status_code))
        is_error = answer.status_code >= 400
        if is_error and REFUSED.get(name) != answer.status_code:
            wrong[name] = f"{status} {answer.content!r}"
        elif status not in found[name].described:
            wrong[name] = f"{status} is not described"
        elif (answer.parsed is None) is not (status in found[name].silent):
            wrong[name] = f"{status} is {answer.parsed!r}: {answer.content!r}"
    assert wrong == {}, json.dumps(wrong, indent=1)
