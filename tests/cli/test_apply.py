"""`apply`, `diff`, `patch`, `scale` and `edit`: how configs are changed from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.interfaces.cli.adapters.transport import ClusterAnswer, ClusterConnection
from fairlead_tests.cli import answered

CONFIG = {"name": "flights", "tasks.max": "4", "password": "s3cret"}
CHANGES: list[dict[str, Any]] = [
    {"key": "header", "from": "true", "to": None},
    {"key": "password", "from": "********", "to": "********"},
    {"key": "tasks.max", "from": "2", "to": "4"},
]
TABLE = """\
CONNECTOR  KEY        FROM      TO
flights    header     true
flights    password   ********  ********
flights    tasks.max  2         4
"""
PATH = "/connectors/flights/config"


def diff_of(name: str = "flights", **more: Any) -> dict[str, Any]:
    return {"name": name, "is_new": False, "changes": [], "warnings": [], **more}


def compared(cluster: Cluster, name: str = "flights", **more: Any) -> None:
    cluster.answer("PUT", f"/connectors/{name}/config/diff", diff_of(name, **more))


def applied(*configs: dict[str, Any], dry_run: bool = False) -> Asked:
    """The request that applies these configs."""
    connectors = [{"name": each["name"], "config": each} for each in configs]
    return Asked("POST", "/apply", {"connectors": connectors, "dry_run": dry_run})


def test_apply_sends_all_configs_at_once_and_says_what_became_of_each(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(json.dumps([CONFIG, {"name": "new"}, {"name": "same"}]))
    changed = diff_of(changes=CHANGES, warnings=["unknown key password"])
    told = [changed, diff_of("new", is_new=True), diff_of("same")]
    cluster.answer("POST", "/apply", told)
    said = (
        "connector flights configured\nwarning: flights: unknown key password\n"
        "connector new created\nconnector same unchanged\n"
    )
    assert run("apply", "-f", "c", "--url", cluster.url) == (0, said, "")
    assert cluster.asked == [applied(CONFIG, {"name": "new"}, {"name": "same"})]


def test_apply_waits_longer_for_an_answer_about_more_connectors(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = list[float]()
    ask = ClusterConnection.ask

    def asked(
        self: ClusterConnection, method: str, path: str, content: bytes | None, s: float
    ) -> ClusterAnswer:
        limits.append(s)
        return ask(self, method, path, content, s)

    monkeypatch.setattr(ClusterConnection, "ask", asked)
    for count in (1, 50):
        configs = [{"name": f"c{number}"} for number in range(count)]
        Path("c").write_text(json.dumps(configs))
        cluster.answer("POST", "/apply", [diff_of(each["name"]) for each in configs])
        assert run("apply", "-f", "c", "--url", cluster.url).code == 0
    # The node examines four at a time, and looks at the outside for 40 s at most.
    assert limits[-1] - limits[0] >= (50 - 1) / 4 * 40


def test_a_dry_run_of_apply_shows_what_would_change(run: Run, cluster: Cluster) -> None:
    Path("c").write_text(json.dumps(CONFIG))
    cluster.answer("POST", "/apply", [diff_of(changes=CHANGES)])
    said = f"connector flights would be configured\n{TABLE}"
    assert run("apply", "-f", "c", "--dry-run", "--url", cluster.url) == (0, said, "")
    assert cluster.asked == [applied(CONFIG, dry_run=True)]


def test_what_keeps_a_file_from_being_applied_is_told_of_each_connector(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text("[{name: x}, {name: flights}]")
    told = "nothing was changed: of 2 connectors, 1 cannot be applied\nconnector x: it is invalid"
    cluster.answer("POST", "/apply", {"error_code": 400, "message": told}, 400)
    assert run("apply", "-f", "c", "--url", cluster.url) == (
        1,
        "",
        "fairlead: nothing was changed: of 2 connectors, 1 cannot be applied\n"
        "fairlead: connector x: it is invalid (HTTP 400)\n",
    )


def test_diff_shows_what_apply_would_change_and_fails_if_that_is_anything(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text("[{name: flights}, {name: x}]")
    compared(cluster)
    compared(cluster, "x")
    same = run("diff", "-f", "c", "--url", cluster.url)
    assert same == (0, "no differences\n", "")
    compared(cluster, changes=CHANGES)
    assert run("diff", "-f", "c", "--url", cluster.url) == (1, TABLE, "")
    told = json.loads(run("diff", "-f", "c", "-o", "json", "--url", cluster.url).out)
    same_x = {"name": "x", "is_new": False, "changes": [], "warnings": []}
    assert told == [{**same_x, "name": "flights", "changes": CHANGES}, same_x]


def test_a_connector_that_is_refused_hides_no_difference_of_the_others(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text("[{name: x}, {name: flights}]")
    refusal = {"error_code": 400, "message": "the config is invalid"}
    cluster.answer("PUT", "/connectors/x/config/diff", refusal, 400)
    said = "fairlead: connector x: the config is invalid (HTTP 400)\n"
    compared(cluster, changes=CHANGES)
    assert run("diff", "-f", "c", "--url", cluster.url) == (2, TABLE, said)
    cluster.answer("PUT", "/connectors/flights/config/diff", refusal, 400)
    told = run("diff", "-f", "c", "--url", cluster.url)
    assert told == (2, "", said + said.replace(" x:", " flights:"))


def test_patch_sets_and_removes_keys(run: Run, cluster: Cluster) -> None:
    cluster.answer("PATCH", PATH, {**answered.INFO, "warnings": ["unknown key rate"]})
    words = ["rate=a=b", "empty=", "--remove", "header"]
    told = run("patch", "connector", "flights", *words, "--url", cluster.url)
    said = "warning: flights: unknown key rate\nconnector flights patched\n"
    assert told == (0, said, "")
    changes = {"rate": "a=b", "empty": "", "header": None}
    assert cluster.asked == [Asked("PATCH", PATH, changes)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say what is to be changed: KEY=VALUE, or --remove KEY"),
        (["rate"], "'rate' is no change: write KEY=VALUE, or --remove KEY"),
        (["=1"], "'=1' is no change: write KEY=VALUE, or --remove KEY"),
    ],
)
def test_a_patch_that_makes_no_sense_is_not_sent(
    words: list[str], said: str, run: Run, cluster: Cluster
) -> None:
    told = run("patch", "connector", "flights", *words, "--url", cluster.url)
    assert (told, cluster.asked) == ((2, "", f"fairlead: {said}\n"), [])


def test_scale_sets_tasks_max(run: Run, cluster: Cluster) -> None:
    cluster.answer("PATCH", PATH, answered.INFO)
    told = run("scale", "connector", "flights", "--tasks", "8", "--url", cluster.url)
    assert told == (0, "connector flights scaled to 8 tasks at most\n", "")
    assert cluster.asked == [Asked("PATCH", PATH, {"tasks.max": "8"})]


@pytest.fixture
def written_by_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The script that is the editor; texts of an edit are in the test's own folder."""
    script = tmp_path / "editor.py"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return script


REPLACE = "import sys, pathlib as p; f = p.Path(sys.argv[1]); f.write_text(f.read_text().replace"


def test_edit_applies_the_text_that_the_editor_leaves(
    run: Run, cluster: Cluster, written_by_editor: Path, tmp_path: Path
) -> None:
    cluster.answer("GET", PATH, {**CONFIG, "password": "********"})
    cluster.answer("POST", "/apply", [diff_of(changes=CHANGES)])
    written_by_editor.write_text(f"{REPLACE}('4', '8'))")
    told = run("edit", "connector", "flights", "--url", cluster.url)
    assert told == (0, "connector flights configured\n", "")
    changed = {**CONFIG, "password": "********", "tasks.max": "8"}
    assert [each for each in cluster.asked if each.method != "GET"] == [applied(changed)]
    assert list(tmp_path.glob("fairlead-*")) == []


def test_edit_without_a_change_sends_nothing(
    run: Run, cluster: Cluster, written_by_editor: Path, tmp_path: Path
) -> None:
    cluster.answer("GET", PATH, CONFIG)
    written_by_editor.write_text("")
    told = run("edit", "connector", "flights", "--url", cluster.url)
    assert told == (0, "connector flights unchanged\n", "")
    assert [each.method for each in cluster.asked] == ["GET"]
    assert list(tmp_path.glob("fairlead-*")) == []


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (f"{REPLACE}('4', '8'))", 1, "tasks.max is odd (HTTP 400)"),
        (f"{REPLACE}('flights', 'f'))", 2, "{file} is to hold connector flights, and no other"),
        ("raise SystemExit(3)", 1, "the editor {editor} failed: nothing was changed"),
    ],
    ids=["refused", "renamed", "failed"],
)
def test_the_text_of_an_edit_that_fails_is_kept(
    script: str,
    code: int,
    said: str,
    run: Run,
    cluster: Cluster,
    written_by_editor: Path,
) -> None:
    cluster.answer("GET", PATH, CONFIG)
    refusal = {"error_code": 400, "message": "tasks.max is odd"}
    cluster.answer("POST", "/apply", refusal, 400)
    written_by_editor.write_text(script)
    told = run("edit", "connector", "flights", "--url", cluster.url)
    (file,) = written_by_editor.parent.glob("fairlead-*")
    said = said.format(file=file, editor=f"{sys.executable} {written_by_editor}")
    kept = f"your text is kept: `fairlead apply -f {file}` applies it"
    assert told == (code, "", f"fairlead: {said}\nfairlead: {kept}\n")


def test_an_edit_takes_back_no_change_that_somebody_else_made_meanwhile(
    run: Run, cluster: Cluster, written_by_editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.answer("GET", PATH, CONFIG)

    def edited(command: list[str], *, check: bool) -> subprocess.CompletedProcess[bytes]:
        assert not check
        file = Path(command[-1])
        file.write_text(file.read_text().replace("s3cret", "t0psecret"))
        cluster.answer("GET", PATH, {**CONFIG, "tasks.max": "8"})
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", edited)
    told = run("edit", "connector", "flights", "--url", cluster.url)
    assert (told.code, {each.method for each in cluster.asked}) == (1, {"GET"})
    assert "connector flights was changed by somebody else meanwhile" in told.err
    (file,) = written_by_editor.parent.glob("fairlead-*")
    assert f"`fairlead apply -f {file}` applies it" in told.err


def test_an_interrupt_while_the_editor_runs_is_the_editors(
    run: Run, cluster: Cluster, written_by_editor: Path
) -> None:
    cluster.answer("GET", PATH, CONFIG)
    interrupts = "import os, signal as s; s.signal(s.SIGINT, s.SIG_IGN); os.kill({}, s.SIGINT)"
    written_by_editor.write_text(
        f"{interrupts.format('os.getppid()')}; {interrupts.format('os.getpid()')}"
    )
    told = run("edit", "connector", "flights", "--url", cluster.url)
    assert told == (0, "connector flights unchanged\n", "")
