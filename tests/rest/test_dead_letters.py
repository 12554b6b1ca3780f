"""`GET /connectors/{connector}/dead-letters`: of a folder, as the product lays it out."""

import asyncio
import json
import os
from collections.abc import Generator, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, assert_type

import pytest
from rest.conftest import RestApi

from fairlead.client import AsyncClient, Refused
from fairlead.client import Client as PythonClient
from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.interfaces.client.calls import dead_letters as calls
from fairlead.runtime.interfaces.client.sending.requests import NodeRequest
from fairlead.runtime.interfaces.replies.connectors import DeadLetterInfo, DeadLetterList
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.routes.connectors import dead_letters
from fairlead.runtime.interfaces.rest.validation.letters import LetterReader
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import LettersRefused
from fairlead.runtime.pipeline.spi.rows import DeadLetter, LetterPage, LetterQuery
from fairlead.runtime.pipeline.stores.files.sink import letter_files
from fairlead.runtime.pipeline.stores.files.sink.letter_files import LetterFolder
from fairlead.runtime.pipeline.stores.files.sink_folder.staging import final_name
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.served import opened_at, serving

PART = "part-00000-8f5f7f8c-0b7e-4f0e-9f0e-0123456789ab-c000.json"
PATH = "/connectors/a/dead-letters"
AT = 1_767_225_600
TIME = "2026-01-01T00:00:00.000+00:00"
QUEUE = "errors.deadletterqueue"


def letter_of(raw: str | None, **more: object) -> dict[str, object]:
    fields = {"connector": "a", "task": 3, "stage": "source", "position": {"file": "/in/a.csv"}}
    text = {} if raw is None else {"raw": raw}
    return {**fields, "reason": "is bad", "time": TIME, **text, **more}


def write_batch(folder: Path, number: int, *letters: Mapping[str, object] | bytes) -> Path:
    """Write the letters of a batch as its file is called once it is published."""
    connector = next((str(each["connector"]) for each in letters if isinstance(each, dict)), "a")
    file = folder / final_name(CommitId(connector, 3, Token(7, 0), number), PART, "0a1b2c3d")
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in letters]
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    os.utime(file, (AT + number, AT + number))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bad"
    (folder / "_fairlead").mkdir(parents=True)
    return folder


@pytest.fixture
def client(api: RestApi, folder: Path) -> Client:
    """A connector whose dead letters are in the folder."""
    config = {
        "connector.class": "SparkPipeline",
        "source.path": f"{folder}/../in",
        "source.format": "csv",
        "sink.format": "json",
        "sink.path": f"{folder}/../out",
        "errors.tolerance": "all",
        f"{QUEUE}.path": str(folder),
        "source.password": "hunter2-hunter2",
    }
    made = api.client.put("/connectors/a/config", json=config)
    assert made.status_code == HTTPStatus.CREATED, made.text
    return api.client


def test_they_come_newest_first_and_page_by_page(client: Client, folder: Path) -> None:
    write_batch(folder, 0, letter_of("old"))
    write_batch(
        folder, 1, letter_of("x\ud800y"), letter_of(None, position={"topic": "t", "offset": "9"})
    )
    write_batch(folder, 2, letter_of("of another one", connector="a-3"))
    write_batch(folder, 2, b"{", b"[]", letter_of("hunter2-hunter2", reason="password=geheim"))
    first = client.get(f"{PATH}?limit=2").json()
    assert (first["where"], first["next"] is None) == (f"the folder {folder}", False)
    assert first["letters"][0] == {
        "time_ms": AT * 1000,
        "reason": 'password="********"',
        "stage": "source",
        "place": "file /in/a.csv",
        "raw": "********",
        "task": 3,
        "batch": 2,
    }
    second = client.get(f"{PATH}?limit=2&cursor={first['next']}").json()
    assert [(each["raw"], each["place"]) for each in first["letters"][1:] + second["letters"]] == [
        ("x\ufffdy", "file /in/a.csv"),
        (None, "topic t, offset 9"),
        ("old", "file /in/a.csv"),
    ]
    assert second["next"] is None
    lines = client.get(f"{PATH}/export").text.splitlines()
    assert [*map(json.loads, lines)] == first["letters"] + second["letters"]


def all_letters(folder: LetterFolder, limit: int) -> Iterator[DeadLetter]:
    page = folder.read(LetterQuery(limit))
    yield from page.letters
    while page.next is not None:
        page = folder.read(LetterQuery(limit, page.next))
        yield from page.letters


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_each_comes_once_however_little_is_read_at_a_time(
    folder: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_files, "_MOST_BYTES", 2_000)
    monkeypatch.setattr(letter_files, "_LONGEST_LETTER", 1_000)
    texts = [["a", "b"], ["c" * 700, "d" * 900, "e"], ["f", "x" * 9_000, "g"], []]
    for number, batch in enumerate(texts):
        write_batch(folder, number, *map(letter_of, batch))
    elsewhere = write_batch(folder / "_fairlead", 9, letter_of("h"))
    (folder / elsewhere.name.replace("000009", "000008")).symlink_to(elsewhere)
    letters = [*all_letters(LetterFolder(folder, "a"), limit)]
    expected = ["f", None, "g", "c" * 700, None, "e", "a", "b"]
    assert [each.raw for each in letters] == expected
    assert letters[1].reason.startswith("this letter has more than")


@pytest.mark.parametrize(
    ("changed", "status", "told"),
    [
        ({f"{QUEUE}.path": None}, HTTPStatus.NOT_FOUND, "its config has no dead letter queue"),
        ({f"{QUEUE}.path": "/nowhere"}, HTTPStatus.SERVICE_UNAVAILABLE, "/nowhere is not there"),
        ({f"{QUEUE}.path": "${env:X}/b"}, HTTPStatus.NOT_FOUND, "which only workers resolve"),
        ({"connector.class": "Locked"}, HTTPStatus.NOT_FOUND, "connectors of this class keep no"),
    ],
)
def test_it_is_said_why_there_are_none_to_read(
    client: Client, changed: dict[str, Any], status: HTTPStatus, told: str
) -> None:
    config = {**client.get("/connectors/a/config").json(), **changed}
    client.put("/connectors/a/config", json={key: each for key, each in config.items() if each})
    for path in (PATH, f"{PATH}/export"):
        answer = client.get(path)
        assert answer.status_code == status, answer.text
        assert told in answer.json()["message"]


async def read_async(url: str) -> list[str | None]:
    async with AsyncClient(url) as reader:
        return [each.raw async for each in await reader.all_dead_letters("a")]


def test_a_python_program_iterates_over_all_of_them_and_exports_them(
    client: Client, folder: Path, api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get(PATH).json()["letters"] == []
    for number, batch in enumerate(["ab", "c", "de"]):
        write_batch(folder, number, *map(letter_of, batch))
    asked: list[str] = []
    make = calls.list_dead_letters

    def note(name: str, limit: int, cursor: str = "") -> NodeRequest[DeadLetterList]:
        asked.append(cursor)
        return make(name, limit, cursor)

    monkeypatch.setattr(calls, "MOST", 2)
    monkeypatch.setattr(calls, "list_dead_letters", note)
    with serving(make_app(api.service), opened_at("http://127.0.0.1:0")) as (listener,):
        url = f"http://127.0.0.1:{listener.address.port}"
        with PythonClient(url) as reader:
            letters = reader.all_dead_letters("a")
            assert_type(letters, Generator[DeadLetterInfo])
            assert [next(letters).raw for _ in range(2)] == ["d", "e"]
            assert len(asked) == 1, "the next page is asked for when it is needed"
            assert [each.raw for each in letters] == ["c", "a", "b"]
            exported = b"".join(reader.export_dead_letters("a"))
            assert [json.loads(each)["raw"] for each in exported.splitlines()] == [*"decab"]
            with pytest.raises(Refused, match="none"):
                reader.all_dead_letters("none")
            (folder / "_fairlead").rmdir()
            with pytest.raises(Refused, match="out of reach"):
                next(reader.export_dead_letters("a"))
            (folder / "_fairlead").mkdir()
        assert asyncio.run(read_async(url)) == [*"decab"]


@pytest.mark.parametrize(
    "cursor", ["x", "bm8=", "MS8tMS9h", "MS85OTk5OTk5OTk5OTk5OTk5OTk5OTkvYQ=="]
)
def test_a_cursor_that_is_none_is_refused(client: Client, cursor: str) -> None:
    answer = client.get(f"{PATH}?cursor={cursor}")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "it is no place among these dead letters" in answer.json()["message"]


def test_an_export_that_cannot_go_on_ends_early_and_the_log_says_why(
    client: Client,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_batch(folder, 0, letter_of("x"), letter_of("y"))
    monkeypatch.setattr(dead_letters, "MOST", 1)
    read = LetterReader.read

    def read_first(reader: LetterReader, query: LetterQuery) -> LetterPage:
        if query.cursor:
            (folder / "_fairlead").rmdir()
        return read(reader, query)

    monkeypatch.setattr(LetterReader, "read", read_first)
    lines = client.get(f"{PATH}/export").text.splitlines()
    assert [json.loads(each)["raw"] for each in lines] == ["x"]
    assert f"ends early: the dead letters of a are out of reach: {folder} is not" in caplog.text


def test_a_folder_that_no_connector_may_use_is_not_read(folder: Path) -> None:
    config = {"name": "a", f"{QUEUE}.path": str(folder)}
    limits = ExternalAccess(AccessLimits(str(folder.parent)))
    with pytest.raises(LettersRefused, match="lies in the node's own folder"):
        SparkPipeline.read_letters(config, limits, LetterQuery(1))
