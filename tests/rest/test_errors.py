import pytest
from rest.conftest import RestApi

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
