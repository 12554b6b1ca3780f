"""`fairlead docs`: the pages in the terminal."""

import os
import pty
import subprocess
import sys

import pytest
from cli.conftest import Run

from fairlead.runtime.interfaces.cli.offline.docs import page_names, without_links
from fairlead_tests.pages import DOCS


def test_all_pages_are_listed_with_what_they_have(run: Run) -> None:
    lines = run("docs").out.splitlines()
    names = [line.split()[0] for line in lines[1:] if line[0] != " "]
    assert names == page_names()
    assert names[:2] == ["start", "concepts"]
    assert {*names} == {
        page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")
    }
    (start,) = (line for line in lines if line.startswith("start "))
    assert start.split(maxsplit=1)[1].startswith("Install fairlead, run a node")


@pytest.mark.parametrize("name", ["stores/jdbc", "jdbc", "docs/stores/jdbc.md"])
def test_a_page_is_found_by_its_name_or_the_last_part_of_it(name: str, run: Run) -> None:
    assert run("docs", name) == (0, (DOCS / "stores" / "jdbc.md").read_text(), "")


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("kafak", "did you mean kafka?"),
        ("stores/kafak", "did you mean stores/kafka?"),
        ("xyzzy", "`fairlead docs` lists all pages"),
        ("../README", "`fairlead docs` lists all pages"),
    ],
)
def test_an_unknown_page_is_told_with_the_one_that_may_be_meant(
    word: str, advice: str, run: Run
) -> None:
    assert run("docs", word) == (2, "", f"fairlead: there is no page {word!r}: {advice}\n")


def test_a_link_is_shown_by_the_page_that_it_leads_to() -> None:
    text = (
        "[a](kafka.md#sink) [b](#here) [c](../spark.md) [d](../../actors/PROTOCOL.md) [e](x://y/z)"
    )
    assert without_links(text, "stores/files") == (
        "a (stores/kafka) b c (spark) d (actors/PROTOCOL.md) e (x://y/z)"
    )


def test_a_terminal_gets_a_page_laid_out_in_a_pager() -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "fairlead.runtime", "docs", "jdbc"]
    environment = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while chunk := _read(master):
            shown += chunk
    os.close(master)
    assert process.returncode == 0
    assert "Other databases (JDBC)" in shown.decode()
    assert "# Other databases" not in shown.decode()
    assert "| key | meaning |" not in shown.decode()


def _read(terminal: int) -> bytes:
    """Return what a program writes to a terminal; b"" when it has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # of Linux, when the last writer is gone
        return b""
