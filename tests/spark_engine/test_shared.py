# pyright: reportPrivateUsage=false
"""One JVM for several processes: what is apart, who dies with whom, and who hears of it."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fairlead.actors.timing import Backoff
from fairlead.runtime.pipeline.engines.shared import owner
from fairlead.runtime.pipeline.engines.shared.channel import (
    LineChannel,
    PeerRefused,
    connect,
    listen,
)
from fairlead.runtime.processes.liveness import Silence
from fairlead_tests.spark_engine.hanging import HangingEngine
from fairlead_tests.spark_engine.sharer import SECRET
from fairlead_tests.spark_engine.sharing import SharedNode, until
from fairlead_tests.spark_engine.signs import gone, runs

CONF_SECRET = "Hush-of-the-settings"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedNode]:
    folder = tmp_path_factory.mktemp("shared") / ("long" * 30)  # longer than a socket's name
    signs = tmp_path_factory.mktemp("shared-signs")
    made = SharedNode(folder, signs, {"spark.hadoop.x.password": CONF_SECRET})
    yield made
    made.close()


@pytest.mark.spark
def test_each_process_has_a_session_of_its_own_and_no_jvm(node: SharedNode) -> None:
    one, three = node.sharer("one"), node.sharer("three")
    assert [one.ask("look"), three.ask("look"), one.ask("look")] == [
        ["done", [["of_one"], "3"]],
        ["done", [["of_three"], "5"]],
        ["done", [["of_one"], "3"]],
    ]
    assert [one.ask("children"), three.ask("children")] == [[], []]


@pytest.mark.spark
def test_a_connectors_own_settings_count_for_its_jobs_alone(node: SharedNode) -> None:
    one = node.sharer("one")
    before = one.ask("look")[1][1]
    assert one.ask("own") == ["done", ["7", before, None]]


def read(file: Path) -> bytes:
    """Return what is in a file, which Spark may remove meanwhile."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.spark
def test_no_secret_of_a_worker_or_of_the_settings_gets_out(node: SharedNode) -> None:
    assert node.sharer("one").ask("leak")[0] == "TaskError"
    log = node.folder / "cache" / "spark" / "shared" / "logs" / "spark.log"
    until(lambda: "afterwards ${ours}" in log.read_text())
    assert "no login" not in log.read_text(), "the error is for the task to tell"
    told = {each: read(each) for each in node.folder.rglob("*") if each.is_file()}
    hold = [each for each in told if CONF_SECRET.encode() in told[each]]
    assert [(each.name, each.stat().st_mode & 0o077) for each in hold] == [("spark.properties", 0)]
    assert not [each for each in told if SECRET.encode() in told[each]]
    assert CONF_SECRET not in str([each.cmdline() for each in (node.owner, node.jvm())])
    modes = [each.stat().st_mode & 0o077 for each in (node.socket, node.socket.parent)]
    assert modes == [0, 0]


@pytest.mark.spark
def test_the_jobs_of_a_process_that_is_killed_end_and_no_others(node: SharedNode) -> None:
    one, three = node.sharer("one"), node.sharer("three")
    (_, mine), (_, other) = one.ask("gateway"), three.ask("gateway")
    assert mine != other
    one.tell("wait")
    three.tell("wait")
    cut, spared = runs(node.signs, "one"), runs(node.signs, "three")
    one.process.kill()
    one.process.wait()
    assert gone([cut.pid])
    assert spared.is_running()
    until(lambda: not takes_calls(mine))  # what it held goes with its gateway
    (node.signs / "three.end").touch()
    assert three.hear() == ["done", 1]
    assert takes_calls(other)


@pytest.mark.spark
@pytest.mark.soak  # each run sees it of an engine in name only, below
def test_a_jvm_that_does_not_answer_is_killed_and_all_share_the_next_one(node: SharedNode) -> None:
    sharers, jvm = [node.sharer("one"), node.sharer("three")], node.jvm()
    jvm.send_signal(signal.SIGSTOP)
    downs = [each.ask("count") for each in sharers]
    assert [down for down, _ in downs] == ["EngineDown", "EngineDown"]
    assert all("no answer for 2 s" in why for _, why in downs), downs
    assert gone([jvm.pid])
    assert [each.ask("warm")[0] for each in sharers] == ["warm", "warm"]
    assert [each.ask("count") for each in sharers] == [["done", 5], ["done", 5]]


@pytest.mark.spark
@pytest.mark.soak
def test_a_jvm_ends_with_its_owner_and_the_next_owner_has_another_one(node: SharedNode) -> None:
    one, jvm = node.sharer("one"), node.jvm()
    os.kill(node.owner.pid, signal.SIGKILL)
    assert gone([jvm.pid])
    assert one.ask("count")[0] == "EngineDown"
    node.restart()
    assert one.ask("warm")[0] == "warm"
    assert one.ask("count") == ["done", 5]


@pytest.mark.spark
def test_an_owner_that_is_told_to_end_leaves_no_process_and_no_file_but_a_log(
    node: SharedNode,
) -> None:
    three, jvm, mine = node.sharer("three"), node.jvm(), node.owner
    (node.signs / "three.end").touch()
    three.tell("wait")
    assert three.hear() == ["done", 1]
    started = [jvm.pid, *(child.pid for child in jvm.children(recursive=True))]
    assert len(started) > 2, "Python workers are among them"
    mine.terminate()
    psutil.wait_procs([mine], timeout=60)
    assert gone([mine.pid, *started])
    folder = node.folder / "cache" / "spark" / "shared"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert files == {"logs", "logs/spark.log"}


def test_an_engine_that_does_not_answer_is_killed_and_all_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "PING_SECONDS", 0.01)
    patience = lambda: Silence(0.1, time.monotonic())  # noqa: E731
    place, is_over = tmp_path / "s", threading.Event()
    engine = HangingEngine(tmp_path)
    mine = owner.JvmOwner(engine, place, lambda _: None, patience, Backoff(0, 0))
    mine.open()

    def look_after() -> None:
        while not is_over.wait(0.01):
            mine.look()

    looks = threading.Thread(target=look_after)
    looks.start()
    channels = {each: connect(place) for each in ("one", "three")}
    heard: list[object] = [admitted(*each) for each in channels.items()]
    engine.hang()
    heard += [(channel.receive(), channel.receive()) for channel in channels.values()]
    again = {each: connect(place) for each in channels}
    heard += [admitted(*each) for each in again.items()]
    for channel in (*channels.values(), *again.values()):
        channel.close()
    is_over.set()
    looks.join()
    engine.hang()  # for good: nobody asks any more
    ended = {"ended": "the JVM was killed: no answer for 0.1 s"}
    first, next_one = [{"port": each, "secret": "s", "jvm": f"JVM {each}"} for each in (1, 2)]
    assert heard == [first, first, (ended, None), (ended, None), next_one, next_one]
    assert mine.restarts == 1


def admitted(name: str, channel: LineChannel) -> dict[str, object]:
    """Ask for the JVM by a channel, and return where it is."""
    channel.send({"worker": name})
    told = channel.receive()
    assert told is not None
    assert told.pop("group").startswith(f"{name}#")
    return told


def takes_calls(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def test_a_channel_takes_over_a_place_and_hears_the_end_of_its_other_side(tmp_path: Path) -> None:
    place = tmp_path / "run" / "engine.sock"
    listen(place).close()
    listener = listen(place)
    calls = connect(place)
    answers = LineChannel(listener.accept()[0])
    calls.send({"worker": "w1"})
    heard = [answers.receive()]
    calls._connection.sendall(b"no JSON\n")
    heard.append(answers.receive())
    calls.close()
    heard.append(answers.receive())
    answers.close()
    listener.close()
    assert heard == [{"worker": "w1"}, None, None]


def test_a_stranger_is_not_talked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = listen(tmp_path / "s")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with pytest.raises(PeerRefused, match=f"belongs to user {user}"):
        connect(tmp_path / "s")
    listener.close()
