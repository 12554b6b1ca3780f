"""A bar on the terminal for what takes long, and nothing for what does not."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run

from fairlead.runtime.interfaces.cli.output import progress
from fairlead.runtime.interfaces.cli.output.progress import show_progress


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Impatient:
    """A timer that is over at once."""

    def __init__(self, _: float, function: object) -> None:
        self.start = function

    def cancel(self) -> None:
        pass


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; for tests themselves, since pytest replaces it before."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_what_takes_long_has_a_bar_that_is_gone_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "Timer", Impatient)
    with show_progress("logs checked", 3) as advance:
        advance(2)
    drawn = terminal.getvalue()
    assert ("logs checked" in drawn, "2/3" in drawn) == (True, True)
    assert drawn.endswith("\x1b[2K"), "the line is cleared"


def test_what_is_done_soon_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with show_progress("logs checked", 3) as advance:
        advance(3)
    assert terminal.getvalue() == ""


def test_a_failure_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "Timer", Impatient)
    with pytest.raises(OSError, match="full"), show_progress("copying"):
        raise OSError("full")
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_there_is_no_bar_without_a_terminal(
    term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "Timer", Impatient)
    monkeypatch.setenv("TERM", term)
    if term == "dumb":
        monkeypatch.setattr(sys, "stderr", Terminal())
    with show_progress("copying", 1) as advance:
        advance(1)
    assert capsys.readouterr().err == ""


def test_a_bar_loads_nothing_before_it_is_drawn(tmp_path: Path) -> None:
    program = (
        "import sys, io\n"
        "from fairlead.runtime.interfaces.cli.output.progress import show_progress\n"
        "sys.stderr.isatty = lambda: True\n"
        "with show_progress('copying', 1) as advance: advance(1)\n"
        "print('rich' in sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ended.stdout == "False\n"


def test_a_wait_says_the_same_with_a_bar(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "Timer", Impatient)
    cluster.answer("PUT", "/connectors/flights/pause", None, 202)
    ended = run("pause", "flights", "--url", cluster.url)
    assert (ended.code, ended.out) == (0, "connector flights pauses\n")
    assert "connectors" in terminal.getvalue()
