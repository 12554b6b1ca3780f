"""`GET /logs`: the log files of the node, for whoever may see what they are about."""

import threading
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi
from starlette.requests import Request

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.rest.client import Client

OLDER = "2026-01-01 10:00:00,000 INFO 1 a: runs [connector=flights task=0]\n"
ACTORS = """2026-01-01 10:00:02,000 WARNING 1 a: is slow [connector=flights task=0]
  because of this
2026-01-01 10:00:04,000 INFO 1 a: it waits for pay-roll [connector=flights]
2026-01-01 10:00:05,000 ERROR 1 a: password=geheim1 is wrong [connector=pay-roll]
2026-01-01 10:00:06,000 INFO 1 a: the node is up
"""
REST = '{"time": "2026-01-01T10:00:03.000+0000", "connector": "flights", "message": "is asked"}\n'
AUDIT = '{"time": "2026-01-01T10:00:07.000Z", "principal": "ann"}\n'


@pytest.fixture(autouse=True)
def folder(api: RestApi) -> Path:
    for name in ("flights", "pay-roll"):
        api.client.put(f"/connectors/{name}/config", json={"connector.class": "Locked"})
    for name, text in {
        "actors.log.1": OLDER,
        "actors.log": ACTORS,
        "rest.log": REST,
        "audit.log": AUDIT,
    }.items():
        (api.data_dir / name).write_text(text)
    return api.data_dir


def client_of(api: RestApi, access: Access) -> Client:
    async def identified(_: Request) -> Principal:
        return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), access)

    return Client(make_app(api.service, identify=identified))


def page_of(client: Client, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/logs{query}").json()
    return found


def texts_of(client: Client, query: str = "") -> list[str]:
    """Return which entries are in an answer, by a part of each."""
    parts = ("runs", "slow", "asked", "waits", "is wrong", "is up", "ann")
    entries = page_of(client, query)["entries"]
    return [part for each in entries for part in parts if part in each["text"]]


def test_a_caller_gets_the_entries_that_they_may_see(api: RestApi) -> None:
    everything = ["runs", "slow", "asked", "waits", "is wrong", "is up", "ann"]
    assert texts_of(client_of(api, Access.of(Role.ADMIN))) == everything
    assert texts_of(client_of(api, Access.of(Role.VIEWER))) == everything[:-1]
    limited = client_of(api, Access.of(Role.VIEWER, ("fli*",)))
    assert texts_of(limited) == ["runs", "slow", "asked"], "one names a connector that is hidden"
    assert texts_of(client_of(api, Access.of(Role.ADMIN, ("none",)))) == []


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("?about=flights", ["runs", "slow", "asked", "waits"]),
        ("?about=flights&tail=2", ["asked", "waits"]),
        ("?about=pay-roll&about=nothing", ["waits", "is wrong"]),
        ("?level=WARN&tail=2", ["is wrong", "ann"]),
        ("?since_ms=60000", []),
    ],
)
def test_entries_are_chosen(api: RestApi, query: str, texts: list[str]) -> None:
    assert texts_of(api.client, query) == texts


def test_secrets_are_hidden_and_what_is_wrong_is_refused(api: RestApi) -> None:
    (entry,) = page_of(api.client, "?about=pay-roll&level=ERROR")["entries"]
    assert "geheim1" not in entry["text"]
    for query in ("?after=x", "?level=loud", "?tail=-1", "?tail=10001"):
        assert api.client.get(f"/logs{query}").status_code == 400
    for each in api.data_dir.glob("*.log*"):
        each.unlink()
    assert api.client.get("/logs").status_code == 404


def test_what_is_new_follows_also_when_the_file_was_put_aside(api: RestApi, folder: Path) -> None:
    place = page_of(api.client)["next"]
    assert page_of(api.client, f"?after={place}")["entries"] == []
    log = folder / "actors.log"
    with log.open("a") as file:
        file.write("2026-01-01 10:00:08,000 INFO 1 a: last of the old file\nhalf of")
    log.rename(folder / "actors.log.1")

    def write() -> None:
        log.write_text("2026-01-01 10:00:09,000 INFO 1 a: first of the new file\n")

    timer = threading.Timer(0.3, write)
    timer.start()
    found = page_of(api.client, f"?after={place}&wait_ms=20000")
    timer.join()
    later = page_of(api.client, f"?after={found['next']}&wait_ms=5000")
    texts = [each["text"] for each in found["entries"] + later["entries"]]
    assert texts == [
        "2026-01-01 10:00:08,000 INFO 1 a: last of the old file",
        "half of",
        "2026-01-01 10:00:09,000 INFO 1 a: first of the new file",
    ]
