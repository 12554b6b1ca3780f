"""Files that a config names: whatever lies there, and whatever it lies on, nobody waits for it."""

import time
from pathlib import Path
from threading import Event

import pytest

from fairlead.runtime.pipeline import plain_file
from fairlead.runtime.pipeline.plain_file import flaw_in_plain_file, read_plain_file
from fairlead_tests.no_plain_files import no_plain_files


def test_a_plain_file_is_read_as_it_is_also_over_a_link_and_up_to_the_maximum(
    tmp_path: Path,
) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"\0\xff" * 50)
    link.symlink_to(file)
    assert read_plain_file(file, 100) == read_plain_file(str(link)) == b"\0\xff" * 50
    assert flaw_in_plain_file(file, 100) == ""
    assert flaw_in_plain_file(file, 99) == f"{file} cannot be read: it has more than 99 bytes"


def test_what_is_no_plain_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    for path, why in no_plain_files(tmp_path).items():
        assert flaw_in_plain_file(path) == f"{path} cannot be read: {why}"
    assert flaw_in_plain_file("a\0b").endswith("cannot be read: no path has a nul")


def test_a_file_system_that_does_not_answer_is_given_up_and_not_asked_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, asked = Event(), list[Path]()

    def hang(path: Path, *_: object) -> bytes:
        asked.append(path)
        end.wait(60)
        return b"late"

    (tmp_path / "b").write_bytes(b"well")
    with monkeypatch.context() as away:
        away.setattr(plain_file, "_read_now", hang)
        away.setattr(plain_file, "LONGEST_S", 0.05)
        for _ in range(3):
            with pytest.raises(TimeoutError, match="its file system does not answer"):
                read_plain_file(tmp_path / "a")
    assert asked == [tmp_path / "a"]
    assert read_plain_file(tmp_path / "b") == b"well"
    (tmp_path / "a").write_bytes(b"back")
    monkeypatch.setattr(plain_file, "_hung", {str(tmp_path / "a"): time.monotonic() - 1})
    assert read_plain_file(tmp_path / "a") == b"back"
    end.set()
