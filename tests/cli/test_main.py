"""The command line as a whole: help, exit codes, and that nobody sees a traceback."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run, in_each_pause

import fairlead
from fairlead.runtime.config.load import load_config
from fairlead.runtime.interfaces.cli.requests.options import DATA_DIR
from fairlead_tests.cli import answered

VERBS = {
    "": ["up", "down", "worker", "demo", "status", "get", "describe", "config", "log", "create"],
    "up": ["--config", "--set", "--data-dir"],
    "down": ["--config", "--set", "--data-dir"],
    "worker": ["--name", "--zone", "--tag", "--capacity", "--config", "--set", "--data-dir"],
    "demo": ["--seconds", "--workers", "--keep"],
    "status": ["--config", "--set", "--data-dir", "--url", "--output", "-o"],
    "get": ["KIND", "NAME", "groups", "loggers", "--url", "-o", "--set"],
    "describe": [
        "KIND",
        "NAME",
        "connector, task, worker, group, plugin or node",
        "--url",
        "-o",
        "--set",
    ],
    "docs": ["PAGE", "stores/kafka"],
    "config": ["--config", "--set", "--data-dir", "-o", "set-context", "get-contexts"],
    "config set-context": ["NAME", "--url", "--token-file"],
    "create": ["--filename", "-f", "--url", "--set"],
    "apply": ["--filename", "-f", "--dry-run", "--wait", "--timeout", "--url", "--set"],
    "diff": ["--filename", "-f", "--url", "-o"],
    "patch": ["KIND", "NAME", "KEY=VALUE", "--remove", "--url"],
    "scale": ["KIND", "NAME", "--tasks", "--url"],
    "edit": ["KIND", "NAME", "--url"],
    "wait": ["KIND", "NAME", "--for", "--timeout", "running", "--url"],
    "top": ["NAME", "--interval", "--url", "-o"],
    "logs": ["NAME", "--follow", "-f", "--data-dir"],
    "log-level": ["LOGGER", "--url"],
    "delete": ["KIND", "NAME", "--url", "--set"],
    "log": ["show", "verify", "backup", "compact", "replay"],
    "log show": ["--from", "--limit", "--offsets", "--follow", "--data-dir", "-o"],
    "log verify": ["--data-dir", "-o"],
    "log backup": ["DEST", "--data-dir"],
    "log compact": ["GROUP", "--all", "--keep-days", "--keep-epochs", "--dry-run", "-o"],
    "log replay": ["--until", "--data-dir", "-o"],
}
ACTORS = ["thespian", "fairlead.actors.group.state.soft_state"]
HEAVY = [*ACTORS, "pyspark", "pyarrow", "py4j", "starlette", "uvicorn", "psutil"]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_fits_the_terminal(verb: str, run: Run) -> None:
    ended = run(*verb.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert [word for word in VERBS[verb] if word not in ended.out] == []
    assert max(map(len, ended.out.splitlines())) <= 100
    assert run(*verb.split(), "-h") == ended


def test_a_paragraph_of_help_has_its_lines_where_the_terminal_ends(run: Run) -> None:
    lines = run("plan", "--help").out.splitlines()
    (first,) = (number for number, line in enumerate(lines) if "The code of the real group" in line)
    assert min(map(len, map(str.rstrip, lines[first : first + 2]))) > 80


def test_help_is_a_verb_of_its_own(run: Run) -> None:
    assert run("help", "drain") == run("drain", "--help")
    assert run("help", "log", "show") == run("log", "show", "--help")
    assert run("help") == run("--help")


def test_no_verb_at_all_shows_the_help(run: Run) -> None:
    assert run() == run("--help")


def test_the_version_is_that_of_the_distribution(run: Run) -> None:
    assert run("--version") == (0, f"fairlead {fairlead.__version__}\n", "")


@pytest.mark.parametrize(
    "words",
    [
        "frob",
        "get",
        "get connectors -o frob",
        "get connectors --frob",
        "get connectors -o xml",
        "describe connector",
        "delete worker w1",
        "create",
        "log",
        "log frob",
        "log show --from x",
        "log show --from -1",
        "log show --limit 0",
        "worker --name a/b",
        "worker --name ..",
        "worker --tag a,b",
        "worker --zone=",
        "worker --capacity 0",
        "worker --capacity 1001",
        "demo --seconds soon",
        "demo --workers 0",
        "up --set nonsense",
        "down --set data.dir=",
        "up --config absent.toml",
        "worker --data-dir a --set session.timeout.ms=1",
    ],
)
def test_a_misuse_has_an_exit_code_of_its_own(words: str, run: Run, tmp_path: Path) -> None:
    ended = run(*words.split())
    assert ended.code == 2
    assert ended.err or words == "log"
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []


def test_the_last_place_turns_any_fault_into_one_line(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.answer("GET", "/groups/g", answered.GROUP)
    monkeypatch.setenv("FAIRLEAD_DEBUG", "0")
    monkeypatch.setitem(sys.modules, "yaml", None)
    ended = run("describe", "group", "g", "--url", cluster.url, "-o", "yaml")
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert ended.err.startswith("fairlead: a fault of fairlead itself: ModuleNotFoundError: ")
    assert ended.err.endswith("FAIRLEAD_DEBUG=1 shows where it comes from\n")
    monkeypatch.setenv("FAIRLEAD_DEBUG", "1")
    with pytest.raises(ModuleNotFoundError):
        run("describe", "group", "g", "--url", cluster.url, "-o", "yaml")


def test_ctrl_c_ends_a_verb_without_a_traceback(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(_: float) -> None:
        raise KeyboardInterrupt

    in_each_pause(monkeypatch, press)
    ended = run("wait", "flights", "--for", "paused", "--url", cluster.url)
    assert ended == (130, "", "\nfairlead: interrupted: what was done before stays\n")


def test_reading_verbs_load_no_engine_and_no_actors(cluster: Cluster, data_dir: Path) -> None:
    logs = ["--data-dir", str(data_dir)]
    verbs = [["get", "tasks", "--url", cluster.url], ["log", "replay", *logs], ["--help"]]
    program = (
        "import sys; from fairlead.runtime.interfaces.cli.main import main;"
        f" codes = [main(verb) for verb in {[*verbs, ['config']]}];"
        f" print(codes, *sorted(sys.modules.keys() & set({HEAVY})))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[0, 0, 0, 0]"


NOT_FOR_STATUS = {
    *(
        *HEAVY,
        "httpx",
        "rich.console",
        "yaml",
        "lmdb",
        "asyncio",
        "cryptography",
        "google",
    ),
    *("re2", "tomllib", "fairlead.events.records", "fairlead.runtime.config.load", "typer"),
}
MOST_MODULES = 250
"""A status that loaded all verbs had 610."""


@pytest.mark.parametrize(
    ("verb", "folder"),
    [
        ("status", ""),
        ("get connectors", "of the environment"),
        ("get tasks -o json", ""),
        ("pause flights", ""),
        ("--help", ""),
    ],
)
def test_a_verb_loads_what_it_needs_and_no_more(
    verb: str, folder: str, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.answer("PUT", "/connectors/flights/pause", None, 202)
    run = tmp_path / (folder or "fairlead-data") / "run"
    run.mkdir(parents=True)
    (run / "node.json").write_text(json.dumps({"rest": cluster.url}))
    plain = {key: each for key, each in os.environ.items() if not key.startswith("FAIRLEAD_")}
    plain |= {"FAIRLEAD_DATA_DIR": folder} if folder else {}
    program = (
        "import sys; from fairlead.runtime.interfaces.cli.main import main;"
        f" code = main({verb.split()}); print(code, *sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={key: each for key, each in plain.items() if key != "COLUMNS"},
    )
    code, *modules = ended.stderr.split()
    assert (code, NOT_FOR_STATUS.intersection(modules)) == ("0", set())
    assert len(modules) < MOST_MODULES


def test_a_status_is_one_request(run: Run, cluster: Cluster) -> None:
    assert run("status", "--url", cluster.url).code == 0
    assert [each.path for each in cluster.asked] == ["/status"]


def test_the_folder_without_settings_is_the_default_of_the_setting() -> None:
    assert load_config(None, {}, ()).data_dir == DATA_DIR


@cache
def told_by(command: str) -> subprocess.CompletedProcess[bytes]:
    """What a command says that has all streams."""
    return subprocess.run(command.split(), capture_output=True, check=False)


CLOSED_IN_SOAK = {"config": ("2>&-", "<&- >&- 2>&-"), "get -o x": ("<&-", ">&-")}
"""A command that prints has its input and its output closed in each run; one that fails, all."""


@pytest.mark.parametrize(
    ("words", "code", "closed"),
    [
        pytest.param(
            words, code, closed, marks=[pytest.mark.soak] * (closed in CLOSED_IN_SOAK[words])
        )
        for words, code in (("config", 0), ("get -o x", 2))
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")
    ],
)
def test_a_closed_stream_is_as_good_as_none(words: str, code: int, closed: str) -> None:
    command = f"{sys.executable} -m fairlead.runtime {words}"
    told = told_by(command)
    ended = subprocess.run(f"{command} {closed}", shell=True, capture_output=True, check=False)
    assert ended.returncode == code
    assert ended.stdout == (b"" if ">&-" in closed.split() else told.stdout)
    assert ended.stderr == (b"" if "2>&-" in closed.split() else told.stderr)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_the_terminal_cannot_show_is_escaped(encoding: str, cluster: Cluster) -> None:
    cluster.answer(
        "GET", "/connector-plugins", [{**answered.PLUGINS[0], "class": "a.\udcff\u2603"}]
    )
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead.runtime", "get", "plugins", "--url", cluster.url],
        env={**os.environ, "PYTHONIOENCODING": encoding, "NO_COLOR": "1"},
        capture_output=True,
        check=True,
    )
    snowman = "\u2603" if encoding == "utf-8" else "\\u2603"
    assert f"\\udcff{snowman}".encode(encoding) in ended.stdout


def test_there_is_no_colour_without_a_terminal(cluster: Cluster) -> None:
    plain = {key: each for key, each in os.environ.items() if key not in {"FORCE_COLOR", "COLUMNS"}}
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead.runtime", "status", "--url", cluster.url],
        env=plain,
        capture_output=True,
        check=True,
    )
    assert b"RUNNING" in ended.stdout
    assert b"\x1b" not in ended.stdout


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/fairlead"),
        ("zsh", ".zfunc/_fairlead"),
        ("fish", ".config/fish/completions/fairlead.fish"),
    ],
)
def test_completion_is_installed_where_the_shell_looks_for_it(
    shell: str, path: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    for words in ([], [shell]):
        told = run("--install-completion", *words)
        assert (told.code, told.err) == (0, "")
        assert told.out.startswith(f"completion for {shell} is in {tmp_path / path}")
        assert f"{shell}_complete" in (tmp_path / path).read_text()
        assert ("compopt -o nospace" in (tmp_path / path).read_text()) is (shell == "bash")
        (tmp_path / path).unlink()
    wrong = run("--install-completion", "tcsh")
    said = "there is completion for bash, zsh, fish, not for tcsh"
    assert wrong == (2, "", f"fairlead: {said}\n")
