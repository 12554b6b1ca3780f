"""`fairlead log withdraw`: the way back to one host keeps all that counts."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fairlead.actors.shards.hosted_logs import LogCopies, open_logs
from fairlead.events.entries.codec import CONTROL, OFFSETS
from fairlead.events.entries.group_keys import SHARED_CONTROL, SHARED_OFFSETS, name_shard
from fairlead.events.log.errors import CopiedLogError
from fairlead.events.log.reader import LogReader
from fairlead.events.stores.opening import StoreSpec
from fairlead.events.stores.port import Claimant, StoreDiffersError
from fairlead.events.stores.stored_log import StoredLog
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.interfaces.cli.main import main
from fairlead.runtime.interfaces.cli.output.printing import Failed
from fairlead_tests.log.memory_store import MemoryEngine, MemoryStore
from fairlead_tests.log.samples import TIME_MS, member
from fairlead_tests.stores.nodes import Cluster

KINDS, SHARED = (CONTROL, OFFSETS), (SHARED_CONTROL, SHARED_OFFSETS)
SHARD = name_shard(1, 2)
FASTEST = {"owner.silence.ms": 500, "kafka.group.shards": 2}


class Nodes:
    """The data folders of two nodes, and the store of their logs."""

    def __init__(self, folder: Path, store: StoreSpec, settings: Mapping[str, object]) -> None:
        self.folder, self.store, self.settings = folder, store, settings
        for name in ("n1", "n2"):
            run = RunFolder(folder / name)
            run.claim()
            run.key()
            run.node_id()
            run.release()

    def copies(self, name: str, log_id: str = "connect") -> LogCopies:
        """Open the copies of a group or a shard."""
        kinds = KINDS if log_id == "connect" else SHARED
        return LogCopies.open(self.place(name, log_id), log_id, kinds, self.store)

    def place(self, name: str, log_id: str) -> Path:
        """Return the folder of the logs of a group or a shard."""
        if log_id == "connect":
            return self.folder / name / "groups" / log_id
        return self.folder / name / "shards" / "1"

    def write(self, name: str, epoch: int, *log_ids: str) -> None:
        """Own logs at a node, write one entry into each, and end."""
        for log_id in log_ids:
            copies = self.copies(name, log_id)
            assert copies.claim(Claimant(name, f"{name}:9094", name), 0.0)
            for log in (copies.control, copies.offsets):
                log.append(log.end, [member(name, epoch)], TIME_MS)
            copies.close()

    def withdraw(self, *words: str) -> int:
        """Run the verb on the first node."""
        told = [f"{key}={value}" for key, value in {**self.settings, **FASTEST}.items()]
        overrides = [word for each in told for word in ("--set", each)]
        folder = str(self.folder / "n1")
        return main(["log", "withdraw", "--data-dir", folder, *overrides, *words])

    def ends(self, log_id: str) -> Sequence[int]:
        """Return the ends of the logs of the first node, as one host opens them."""
        kinds = KINDS if log_id == "connect" else SHARED
        logs = open_logs(self.place("n1", log_id), log_id, kinds, had_logs=False)
        logs.control.close()
        logs.offsets.close()
        return logs.control.end, logs.offsets.end


@pytest.fixture(params=["memory", "postgres"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    settings: Mapping[str, object] = {"log.store": "postgres", "log.store.url": "postgresql://db/x"}
    if request.param == "memory":
        engines: dict[str, MemoryEngine] = {}

        def opened(_: StoreSpec, name: str) -> MemoryStore:
            return MemoryStore(engines.setdefault(name, MemoryEngine()))

        monkeypatch.setattr(StoreSpec, "open", opened)
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        settings = cluster.store
        for name, value in cluster.environ.items():
            monkeypatch.setenv(name, value)
    return Nodes(
        tmp_path, StoreSpec("postgres", "fairlead", str(settings["log.store.url"])), settings
    )


def test_what_another_node_has_committed_is_there_on_the_one_host(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.write("n1", 1, "connect")
    nodes.write("n2", 2, "connect", SHARD)
    with pytest.raises(CopiedLogError, match="`fairlead log withdraw`"):
        nodes.ends("connect")
    assert nodes.withdraw("-o", "yaml") == 0, capsys.readouterr().err
    assert capsys.readouterr().out.count("entries: 2") == 2
    assert nodes.ends("connect") == (2, 2)
    assert nodes.ends(SHARD) == (1, 1), "the first node had no copy of it"
    assert not (nodes.folder / "n1" / "shards" / "0").exists()
    copies = nodes.copies("n1")
    with pytest.raises(StoreDiffersError, match="never in the store"):
        copies.control.follow()
    copies.close()


@pytest.mark.parametrize("logs", [3, 4])
def test_it_is_repeated_wherever_it_was_interrupted(
    nodes: Nodes, logs: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.write("n1", 1, "connect", SHARD)
    withdraw, done = StoredLog.withdraw, list[Path]()

    def interrupted(log: StoredLog) -> None:
        withdraw(log)
        done.append(log.path)
        if len(done) == logs:
            raise Failed("killed")

    with monkeypatch.context() as patched:
        patched.setattr(StoredLog, "withdraw", interrupted)
        assert nodes.withdraw() == 1
    assert len(done) == logs
    capsys.readouterr()
    assert nodes.withdraw() == 0, capsys.readouterr().err
    assert (nodes.ends("connect"), nodes.ends(SHARD)) == ((1, 1), (1, 1))


def test_what_was_withdrawn_and_went_on_by_itself_is_not_withdrawn_again(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.write("n1", 1, "connect")
    assert nodes.withdraw() == 0
    logs = open_logs(nodes.place("n1", "connect"), "connect", KINDS, had_logs=False)
    logs.control.append(1, [member("n1", 2)], TIME_MS)
    logs.control.close()
    logs.offsets.close()
    assert nodes.withdraw() == 1
    assert "was never in the store, or was withdrawn from it" in capsys.readouterr().err
    assert nodes.ends("connect") == (2, 1)


def test_it_is_refused_while_another_node_is_heard_of_as_the_owner(
    nodes: Nodes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.write("n1", 1, "connect")
    owner = nodes.copies("n2")
    assert owner.claim(Claimant("n2", "n2:9094", "n2"), 0.0)
    sleep = time.sleep

    def beat(seconds: float) -> None:
        owner.control.beat()
        sleep(seconds)

    with monkeypatch.context() as patched:
        patched.setattr("time.sleep", beat)
        assert nodes.withdraw() == 1
    told = capsys.readouterr().err
    assert "the node n2 at n2:9094 owns the group and was heard of" in told
    assert "end all nodes first (`fairlead down`)" in told
    owner.close()
    with LogReader.open(nodes.place("n1", "connect") / "control", "connect") as log:
        assert log.end() == 1
    with pytest.raises(CopiedLogError):
        nodes.ends("connect")


def test_it_is_refused_if_a_node_lives_that_takes_the_group_over(
    nodes: Nodes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.write("n1", 1, "connect")
    other, sleep = nodes.copies("n2"), time.sleep

    def take_over(seconds: float) -> None:
        owner = other.control.owner()
        if owner is not None and owner.claimant.folder not in {"n1", "n2"}:
            assert other.claim(Claimant("n2", "n2:9094", "n2"), 0.0)
        sleep(seconds)

    with monkeypatch.context() as patched:
        patched.setattr("time.sleep", take_over)
        assert nodes.withdraw() == 1
    other.close()
    assert "the node n2 at n2:9094 owns the group and was heard of" in capsys.readouterr().err
    with pytest.raises(CopiedLogError):
        nodes.ends("connect")


def test_a_store_without_logs_is_not_taken_for_an_end(
    nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nodes.withdraw() == 1
    assert "the store has no logs of connect: nothing was changed" in capsys.readouterr().err
    assert nodes.withdraw("--set", "log.store=lmdb") == 2
    assert "where from? --from postgres or kafka" in capsys.readouterr().err
