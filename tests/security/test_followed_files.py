"""A file that is followed is a plain one; what it last said well stays in force."""

import logging
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from fairlead.runtime.security.followed_files import (
    FileRefused,
    FollowedFiles,
    parse_owned,
    read_owned,
)
from fairlead.runtime.security.kafka.users import changing_users, load_users


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(FileRefused, match=r"pipe is no file of at most 16 MiB$"):
        read_owned(tmp_path / "pipe", is_secret=True)


def test_whoever_changes_a_file_waits_until_others_have(tmp_path: Path) -> None:
    path, program = (
        tmp_path / "users.json",
        dedent(
            f"""
        import time
        from pathlib import Path
        from fairlead.runtime.security.kafka.users import changing_users
        with changing_users(Path({str(tmp_path / "users.json")!r})) as users:
            print("locked", flush=True)
            time.sleep(0.3)  # whoever does not wait writes first
            users["ben"] = {{}}
        """
        ),
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with changing_users(path) as users:
            users["ann"] = {}
    assert load_users(path).keys() == {"ann", "ben"}


def test_what_a_file_said_well_counts_until_it_says_something_well_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "number"
    path.write_text("1")
    file = FollowedFiles([path], partial(parse_owned, path, int))
    for text, is_new, content in (("x", False, 1), ("22", True, 22)):
        path.write_text(text)
        assert (file.refresh(), file.content) == (is_new, content)
        assert not file.refresh()
    path.unlink()
    os.mkfifo(path)
    assert (file.refresh(), file.content) == (False, 22)
    still = "; what it said before stays in force until it changes again"
    assert caplog.messages == [
        f"{path}: invalid literal for int() with base 10: 'x'{still}",
        f"read again: {path}",
        f"{path} is no file of at most 16 MiB{still}",
    ]
