"""Files that a config names: whatever lies there, and whatever it lies on, nobody waits for it."""

from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from fairlead.runtime.pipeline.untrusted import plain_file
from fairlead.runtime.pipeline.untrusted.plain_file import flaw_in_plain_file, read_plain_file
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


def test_a_file_system_that_does_not_answer_is_given_up_and_seldom_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, asked, now = Event(), list[float](), [0.0]

    def hang(*_: object) -> bytes:
        asked.append(now[0])
        end.wait(60)
        return b"late"

    (tmp_path / "a").write_bytes(b"back")
    (tmp_path / "b").write_bytes(b"well")
    monkeypatch.setattr(plain_file, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with monkeypatch.context() as away:
        away.setattr(plain_file, "_read_now", hang)
        away.setattr(plain_file, "LONGEST_S", 0.05)
        for now[0] in (0.0, 1.0, 59.0, 60.0, 179.0, 180.0, 419.0, 420.0):
            with pytest.raises(TimeoutError, match="its file system does not answer"):
                read_plain_file(tmp_path / "a")
    assert asked == [0.0, 60.0, 180.0, 420.0]  # each left a thread behind
    assert read_plain_file(tmp_path / "b") == b"well"
    left = plain_file._left[str(tmp_path / "a")]
    end.set()  # it answers again: nobody waits for the end of the pause
    assert left.content.result(60) == b"late"
    assert read_plain_file(tmp_path / "a") == b"back"
    assert str(tmp_path / "a") not in plain_file._left
