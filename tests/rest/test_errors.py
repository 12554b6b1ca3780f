import asyncio
import json
from contextlib import suppress
from typing import Any
from unittest.mock import AsyncMock

import pytest
from rest.conftest import RestApi

from fairlead.projections.metrics.processes import RequestMetrics
from fairlead.runtime.interfaces.rest.app import ENDING, RequestMeter
from fairlead_tests.rest.client import Client

MALFORMED = "the request is malformed: "


def error(code: int, message: str) -> dict[str, object]:
    return {"error_code": code, "message": message}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"{",
            "body: no valid JSON, from character 1 on"
            " (Expecting property name enclosed in double quotes)",
        ),
        (b"[]", "body: Input should be a valid dictionary or object to extract fields from"),
        (b"", "body: Field required"),
        (b'{"name": "a"}', "config: Field required"),
        (b'{"name": "a", "config": {"k": {}}}', "config.k: Input should be a valid string"),
        (b'{"name": "a", "config": {}, "s": 1}', "s: Extra inputs are not permitted"),
    ],
)
def test_a_body_that_is_malformed_is_a_400(client: Client, body: bytes, message: str) -> None:
    headers = {"content-type": "application/json"}
    reply = client.post("/connectors", content=body, headers=headers)
    assert reply.json() == error(400, MALFORMED + message)


@pytest.mark.parametrize(
    "body", [b'{"name": "\\ud800", "config": {}}', b'{"name": "a", "config": {"k": "\\ud800"}}']
)
def test_text_that_no_log_can_hold_is_a_400(client: Client, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/connectors", content=body, headers=headers).status_code == 400


def test_arrays_in_arrays_in_arrays_are_a_400(client: Client) -> None:
    headers = {"content-type": "application/json"}
    reply = client.post("/connectors", content=b"[" * 100_000, headers=headers)
    assert (reply.status_code, reply.json()["error_code"]) == (400, 400)


def test_a_body_that_is_too_large_is_a_413(client: Client) -> None:
    reply = client.post("/connectors", json={"name": "a", "config": {"k": "x" * (1 << 20)}})
    assert reply.json() == error(413, "a body may have 1048576 bytes at most")


def test_a_mistake_of_ours_is_a_500_without_a_traceback(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.gateway, "locate", None)
    reply = api.client.get("/health")
    assert reply.json() == error(
        500,
        "fairlead made a mistake (TypeError in GET /health): nothing more is known here, "
        "logs/rest.log of the data folder says where",
    )


def test_every_error_is_documented_and_no_other_shape(client: Client) -> None:
    document = client.get("/openapi.json").json()
    answers = {
        (path, method): set(operation["responses"])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert all("default" in codes and "422" not in codes for codes in answers.values()), answers


async def cancelled(app: Any) -> list[Any]:
    """Return what is sent of a request that is cancelled."""
    send, scope = AsyncMock(), {"type": "http", "method": "PUT", "path": "/", "headers": []}
    request = asyncio.create_task(RequestMeter(app, RequestMetrics())(scope, AsyncMock(), send))
    await asyncio.sleep(0)
    request.cancel()
    with suppress(asyncio.CancelledError):
        await request
    return [each.args[0] for each in send.await_args_list]


def test_who_waits_when_the_process_ends_hears_so() -> None:
    async def waits(*_: Any) -> None:
        await asyncio.Event().wait()

    head, body = asyncio.run(cancelled(waits))
    assert (head["status"], json.loads(body["body"])) == (503, error(503, ENDING))


def test_an_answer_that_has_begun_ends_with_the_process() -> None:
    async def begins(*end: Any) -> None:
        await end[-1]({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    sent = asyncio.run(cancelled(begins))
    assert [each["type"] for each in sent] == ["http.response.start"]
