"""The connectors are kept in step with a folder of files: what is there is what runs."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteConnector, PutConnectors
from fairlead.runtime.interfaces.replies.folder import FolderReport
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.watch import folder as folder_watch
from fairlead.runtime.interfaces.rest.watch.folder import PRINCIPAL, FolderSettings, FolderWatch
from fairlead_tests.rest.client import Client

LOCKED = {"connector.class": "Locked"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "connectors"
    made.mkdir()
    return made


@pytest.fixture
def watch(api: RestApi, folder: Path) -> FolderWatch:
    """In apply mode, with pruning."""
    return FolderWatch(api.service, FolderSettings(folder, applies=True, prunes=True))


def write(folder: Path, name: str, **config: str) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": {**LOCKED, **config}}))
    return path


def settle(watch: FolderWatch) -> FolderReport:
    """Look until a change of the folder counts, and what it led to is seen."""
    for _ in range(3):
        watch.look()
    return watch.report()


def names(api: RestApi) -> list[str]:
    return sorted(api.client.get("/connectors").json())


def config_of(api: RestApi, name: str) -> dict[str, str]:
    found = api.client.get(f"/connectors/{name}/config").json()
    return {key: each for key, each in found.items() if key not in {"name", "connector.class"}}


def test_what_is_in_the_folder_is_what_runs(api: RestApi, folder: Path, watch: FolderWatch) -> None:
    write(folder, "a", password="s3cret")
    (folder / "more").mkdir()
    (folder / "more" / "bc.yaml").write_text(
        "name: b\nconfig: {connector.class: Locked}\n---\nname: c\nconnector.class: Locked\n"
    )
    (folder / "d.properties").write_text("name=d\nconnector.class=Locked\n")
    report = settle(watch)
    assert (report.state, report.files, report.in_folder, report.errors) == ("in step", 3, 4, [])
    assert names(api) == ["a", "b", "c", "d"]
    assert config_of(api, "a") == {"password": "********"}
    assert [type(each) for each in api.gateway.sent] == [PutConnectors], "all in one epoch"
    write(folder, "a", password="s3cret", **{"tasks.max": "2"})
    (folder / "d.properties").unlink()
    assert settle(watch).state == "in step"
    assert names(api) == ["a", "b", "c"]
    assert config_of(api, "a") == {"password": "********", "tasks.max": "2"}


def test_nothing_is_examined_or_sent_while_nothing_changes(
    api: RestApi, folder: Path, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "a")
    settle(watch)
    sent = len(api.gateway.sent)

    async def fail(*_: object) -> None:
        raise AssertionError("it is examined")

    monkeypatch.setattr(folder_watch, "examine_configs", fail)
    settle(watch)
    assert len(api.gateway.sent) == sent


def test_a_plan_is_told_and_nothing_is_changed(
    api: RestApi, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.client.put("/connectors/b/config", json={**LOCKED, "tasks.max": "3"})
    sent = len(api.gateway.sent)
    write(folder, "a")
    write(folder, "b", **{"tasks.max": "2"})
    caplog.set_level(logging.INFO)
    watch = FolderWatch(api.service, FolderSettings(folder, prunes=True))
    report = settle(watch)
    assert len(api.gateway.sent) == sent
    assert report.state == "differs"
    assert [(each.name, each.is_new) for each in report.to_apply] == [("a", True), ("b", False)]
    assert report.drifted == ["b"]
    assert [each for each in caplog.messages if "connectors.dir" in each] == [
        f"connectors.dir: {folder}: differs, 2 connectors in 2 files, 2 to create or change, 1 of"
        " them written by others",
        "connectors.dir: connector a would be created",
        "connectors.dir: connector b, which others wrote last would be changed (tasks.max)",
    ]
    status = Client(make_app(replace(api.service, read_folder=watch.report))).get("/status").json()
    assert status["folder"]["state"] == "differs"


def test_what_others_change_is_changed_back(api: RestApi, folder: Path, watch: FolderWatch) -> None:
    write(folder, "a", **{"tasks.max": "2"})
    settle(watch)
    api.client.put("/connectors/a/config", json={**LOCKED, "tasks.max": "9"})
    watch.look()
    assert watch.report().drifted == ["a"]
    assert settle(watch).state == "in step"
    assert config_of(api, "a") == {"tasks.max": "2"}


def test_a_connector_that_a_person_made_is_never_pruned(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    api.client.put("/connectors/mine/config", json=LOCKED)
    write(folder, "a")
    write(folder, "b")
    path = write(folder, "mine")
    settle(watch)
    path.unlink()
    (folder / "b.json").unlink()
    assert settle(watch).to_delete == []
    assert names(api) == ["a", "mine"]


def test_one_that_somebody_has_changed_since_is_theirs(api: RestApi, folder: Path) -> None:
    write(folder, "a")
    write(folder, "b")
    settle(FolderWatch(api.service, FolderSettings(folder, applies=True)))
    api.client.put("/connectors/a/config", json={**LOCKED, "tasks.max": "9"})
    (folder / "a.json").unlink()
    settle(FolderWatch(api.service, FolderSettings(folder, applies=True, prunes=True)))
    assert names(api) == ["a", "b"]


def test_without_the_word_nothing_is_pruned(api: RestApi, folder: Path) -> None:
    write(folder, "a")
    write(folder, "b")
    watch = FolderWatch(api.service, FolderSettings(folder, applies=True))
    settle(watch)
    (folder / "b.json").unlink()
    assert settle(watch).state == "in step"
    assert names(api) == ["a", "b"]


def test_a_folder_that_is_gone_or_empty_prunes_nothing(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    path = write(folder, "a")
    settle(watch)
    path.rename(folder.with_name("kept.json"))
    assert settle(watch).to_delete == [], "an unmounted folder is empty"
    folder.rmdir()
    report = settle(watch)
    assert report.state == "missing"
    assert [each.message for each in report.errors] == [
        f"{folder}: No such file or directory: nothing is changed or deleted until it is back"
    ]
    assert names(api) == ["a"]
    folder.mkdir()
    write(folder, "b")
    assert settle(watch).state == "in step"
    assert names(api) == ["b"]


def test_a_broken_file_holds_up_no_other_and_nothing_is_pruned_meanwhile(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    path = write(folder, "a", **{"tasks.max": "2"})
    write(folder, "b")
    settle(watch)
    path.write_text('name: a\nconfig:\n  tasks.max: "3\n')
    (folder / "b.json").unlink()
    write(folder, "c")
    report = settle(watch)
    assert report.state == "failed"
    ((file, connector, message),) = [(e.file, e.connector, e.message) for e in report.errors]
    assert (file, connector) == ("a.json", "")
    assert message.startswith(f"{path} is neither JSON nor YAML: ")
    assert "line 4" in message
    assert names(api) == ["a", "b", "c"], "a may be in the broken file, and so may b"
    assert config_of(api, "a") == {"tasks.max": "2"}
    write(folder, "a", **{"tasks.max": "3"})
    assert settle(watch).state == "in step"
    assert names(api) == ["a", "c"]


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (b"\xff\xfe\x00", "neither JSON nor YAML"),
        (b"", "holds no connector"),
        (b"[" * 100_000, "neither JSON nor YAML"),
        (b'{"name": "x"}' + b" " * (5 << 20), "at most are read"),
        (b'{"name": "x", "name": "y"}', "twice"),
    ],
    ids=["no text", "nothing", "deep", "large", "ambiguous"],
)
def test_hostile_bytes_are_an_error_of_their_file(
    api: RestApi, folder: Path, watch: FolderWatch, content: bytes, flaw: str
) -> None:
    (folder / "x.yaml").write_bytes(content)
    (folder / "loop.json").symlink_to("loop.json")
    write(folder, "a")
    report = settle(watch)
    assert [each.file for each in report.errors] == ["loop.json", "x.yaml"]
    assert flaw in report.errors[1].message
    assert names(api) == ["a"]


def test_a_config_that_is_refused_holds_up_no_other_and_is_tried_again(
    api: RestApi, folder: Path, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "a", password="a b")
    write(folder, "b")
    report = settle(watch)
    assert (report.state, names(api)) == ("failed", ["b"])
    assert [(each.file, each.connector) for each in report.errors] == [("a.json", "a")]
    assert "a b" not in report.errors[0].message, "it is a secret"
    monkeypatch.setattr(folder_watch, "AGAIN_SECONDS", 0.0)
    write(folder, "a", password="ab")
    assert settle(watch).state == "in step"
    assert names(api) == ["a", "b"]


def test_what_the_group_refuses_is_not_told_as_done(
    api: RestApi, folder: Path, watch: FolderWatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, "a")
    write(folder, "b")
    settle(watch)
    (folder / "b.json").unlink()
    write(folder, "a", **{"tasks.max": "2"})
    api.gateway.refusal = CommandReply(Error.COORDINATOR_NOT_AVAILABLE, "the disk is full", 0)
    caplog.set_level(logging.INFO)
    assert settle(watch).state == "failed"
    assert [each.partition(": ")[2] for each in caplog.messages][-5:] == [
        "nothing was applied: the disk is full",
        "b: it was not deleted: the disk is full",
        watch.report().summary,
        "connector a would be changed (tasks.max)",
        "connector b would be deleted",
    ]


def test_a_connector_that_two_files_have_stays_as_it_is(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    write(folder, "a", **{"tasks.max": "2"})
    settle(watch)
    (folder / "b.json").write_text(json.dumps({"name": "a", **LOCKED}))
    report = settle(watch)
    assert [each.line for each in report.errors] == [
        "a.json, a: a.json and b.json give connector a 2 times: it stays as it is; keep one of them"
    ]
    assert config_of(api, "a") == {"tasks.max": "2"}


def test_a_file_that_is_being_written_is_not_read(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    path = write(folder, "a")
    text = path.read_text()
    for upto in range(5, len(text), 9):
        path.write_text(text[:upto])
        watch.look()
        assert watch.report().errors == []
    path.write_text(text)
    assert settle(watch).state == "in step"
    assert names(api) == ["a"]


def test_a_mounted_config_map_is_followed_when_its_links_are_swapped(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    for number in (1, 2):
        version = folder / f"..version{number}"
        version.mkdir()
        write(version, "a", **{"tasks.max": str(number)})
    (folder / "..data").symlink_to("..version1")
    (folder / "a.json").symlink_to("..data/a.json")
    settle(watch)
    assert config_of(api, "a") == {"tasks.max": "1"}
    (folder / "..new").symlink_to("..version2")
    (folder / "..new").rename(folder / "..data")
    settle(watch)
    assert config_of(api, "a") == {"tasks.max": "2"}


def test_the_log_says_that_the_files_wanted_it(
    api: RestApi, folder: Path, watch: FolderWatch
) -> None:
    write(folder, "a")
    write(folder, "b")
    settle(watch)
    (folder / "b.json").unlink()
    settle(watch)
    put, delete = api.gateway.sent
    assert isinstance(put, PutConnectors)
    assert isinstance(delete, DeleteConnector)
    assert (put.principal, delete.principal) == (PRINCIPAL, PRINCIPAL)


def test_many_files_are_one_command(
    api: RestApi, folder: Path, watch: FolderWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        write(folder, f"c{number}")
    reads = list[str]()
    real = watch._files._read_file  # pyright: ignore[reportPrivateUsage]

    def read(name: str, state: object) -> object:
        reads.append(name)
        return real(name, state)  # type: ignore[arg-type]

    monkeypatch.setattr(watch._files, "_read_file", read)  # pyright: ignore[reportPrivateUsage]
    settle(watch)
    write(folder, "c7", **{"tasks.max": "2"})
    settle(watch)
    assert (len(reads), reads[-1], len(api.gateway.sent)) == (201, "c7.json", 2)
    assert len(names(api)) == 200
