"""A committed batch is put in place once, by whomever, whenever, and never in parts."""

import errno
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.log.files import sync_path
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.spi.errors import SinkBroken
from fairlead.runtime.pipeline.stores.files.sink_folder import publishing, staging

BATCH = CommitId("flights", 0, Token(12, 3), 7)
UUID = "12345678-1234-1234-1234-123456789abc"
FILES = 20
KILLED = """
import os, signal, sys
from pathlib import Path
from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Token
from fairlead.runtime.pipeline.stores.files.sink_folder import publishing, staging

rename = Path.rename
left = [3]
def dying(self, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return rename(self, target)
Path.rename = dying
where = sys.argv[2]
manifest = Manifest(sys.argv[1], where, 20, 80, 20)
publishing.publish(Path(sys.argv[1]), manifest, CommitId("flights", 0, Token(12, 3), 7))
"""


def stage(root: Path, commit_id: CommitId = BATCH, text: str = "row\n") -> Manifest:
    where = staging.batch_folder(commit_id)
    for number in range(FILES):
        part = root / where / f"m={number % 2}" / f"part-{number:05d}-{UUID}.c000.csv"
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text)
        (part.parent / f".{part.name}.crc").write_text("crc")
    (root / where / "_SUCCESS").touch()
    return Manifest(str(root), where, FILES, FILES * len(text), FILES)


def seen(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


EXPECTED = sorted(f"m={n % 2}/part-flights-0-12-3-000007-{n:05d}.c000.csv" for n in range(FILES))


def test_names_are_a_function_of_the_batch_and_nothing_else_is_left(tmp_path: Path) -> None:
    manifest = stage(tmp_path)
    staging.make_durable(tmp_path, tmp_path / manifest.staging)
    for _ in range(2):
        publishing.publish(tmp_path, manifest, BATCH)
        assert seen(tmp_path) == EXPECTED
    assert [each.name for each in (tmp_path / "_fairlead").iterdir()] == ["staging"]


def test_a_publisher_killed_half_way_is_finished_by_the_next(tmp_path: Path) -> None:
    manifest = stage(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), manifest.staging], check=False
    )
    assert (done.returncode, len([each for each in seen(tmp_path) if each in EXPECTED])) == (-9, 3)
    publishing.publish(tmp_path, manifest, BATCH)
    assert seen(tmp_path) == EXPECTED


def test_publishers_at_once_are_harmless(tmp_path: Path) -> None:
    manifest = stage(tmp_path)
    faults: list[Exception] = []
    together = threading.Barrier(4)

    def publish() -> None:
        together.wait()
        try:
            publishing.publish(tmp_path, manifest, BATCH)
        except Exception as error:  # noqa: BLE001  # told by the assertion below
            faults.append(error)

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (faults, seen(tmp_path)) == ([], EXPECTED)


def test_a_file_of_another_content_is_never_replaced(tmp_path: Path) -> None:
    manifest = stage(tmp_path, text="mine\n")
    other = tmp_path / EXPECTED[0]
    other.parent.mkdir()
    other.write_text("other\n")
    with pytest.raises(SinkBroken, match="exists already"):
        publishing.publish(tmp_path, manifest, BATCH)
    assert other.read_text() == "other\n"


def test_a_batch_that_is_staged_again_begins_with_the_folders_of_its_job_and_nothing_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / stage(tmp_path).staging
    staging.make_batch_folder(folder)
    assert list(staging.data_files(folder)) == []
    assert sorted(folder.rglob("*")) == [
        folder / "_temporary",
        folder / "_temporary/0",
        folder / "_temporary/0/_temporary",
    ]


def test_a_sweep_takes_what_is_older_and_leaves_the_rest(tmp_path: Path) -> None:
    old, own, newer = Token(9, 9), Token(12, 3), Token(12, 4)
    for token in (old, own, newer):
        stage(tmp_path, CommitId("flights", 0, token, 0))
    stage(tmp_path, CommitId("flights", 1, old, 0))
    stage(tmp_path, CommitId("flights-0", 0, old, 0))
    staging.sweep(tmp_path, Resource("flights", 0), own)
    left = {file.split("/m=")[0] for file in seen(tmp_path) if "/m=" in file}
    assert left == {
        "_fairlead/staging/flights-0/12-4/0",
        "_fairlead/staging/flights-1/9-9/0",
        "_fairlead/staging/flights-0-0/9-9/0",
    }


def test_a_discard_takes_one_batch(tmp_path: Path) -> None:
    stage(tmp_path)
    kept = stage(tmp_path, BATCH._replace(batch=8))
    staging.discard(tmp_path, BATCH)
    staging.discard(tmp_path, BATCH)
    assert {file.split("/m=")[0] for file in seen(tmp_path) if "/m=" in file} == {kept.staging}


@pytest.mark.parametrize("name", ["../../etc", "a/b", ".", "ü" * 200, "a%2Fb", ""])
def test_a_connectors_name_never_leads_out_of_the_sink_nor_out_of_sight(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / "a" / "b" / "c"
    commit_id = CommitId(name, 0, Token(1, 0), 0)
    manifest = stage(root, commit_id)
    publishing.publish(root, manifest, commit_id)
    found = [Path(file) for file in seen(tmp_path)]
    assert {file.parent for file in found} == {Path("a/b/c/m=0"), Path("a/b/c/m=1")}
    assert [file.name[:5] for file in found] == ["part-"] * FILES


def test_a_file_that_cannot_be_flushed_is_told_by_its_path() -> None:
    # It can be opened, but not be flushed.
    with pytest.raises(OSError, match="'/dev/null'"):
        sync_path(Path("/dev/null"))


def test_a_small_file_that_finds_no_space_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "sync_path", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        staging.replace_durably(tmp_path / "owner.json", {"cluster": "a"})
    assert seen(tmp_path) == []
