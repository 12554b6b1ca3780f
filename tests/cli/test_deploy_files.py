"""`examples`: the files of `deploy/` are listed, and written where pages say that they are."""

from pathlib import Path

from cli.conftest import Run

from fairlead.runtime.interfaces.cli.offline.deploy_files import CONTENTS, ROOT


def test_all_that_is_installed_is_listed(run: Run) -> None:
    assert {each.name for each in ROOT.iterdir() if each.name != "__pycache__"} == {*CONTENTS}
    lines = run("examples").out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", *CONTENTS]


def test_examples_are_written_where_pages_name_them(run: Run) -> None:
    told = run("examples", "systemd", "flights.yaml")
    assert told == (0, "deploy/flights.yaml written\ndeploy/systemd written\n", "")
    unit = Path("deploy/systemd/fairlead.service")
    assert unit.read_text() == (ROOT / "systemd" / unit.name).read_text()
    assert run("lint", "deploy/flights.yaml").code == 0
    again = run("examples", "systemd")
    said = "deploy/systemd is there already, and stays as it is: choose another --to DIR"
    assert again == (1, "", f"fairlead: {said}\n")
    assert run("examples", "systemd", "--to", "other").code == 0
    wrong = run("examples", "systemed").err
    assert wrong.startswith("fairlead: there is no example systemed; there is: flights.yaml")
