"""Files of connectors: a value is the text that stands there, and there may be many files."""

import io
import json
from pathlib import Path

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.interfaces.cli.requests.files import read_connectors

AS_WRITTEN = [
    *(
        "0123456",
        "0x1F",
        "0o17",
        "0b101",
        "1_000",
        "+5",
        "-0",
        "12345678901234567890123",
        "f" * 6_000,
    ),
    *(
        "1.10",
        "1e3",
        "1E400",
        ".5",
        ".inf",
        "-.INF",
        ".nan",
        "1.0e+20",
        "1:30",
        "190:20:30",
        "1:30.5",
    ),
    *("NO", "no", "yes", "Yes", "on", "Off", "y", "n", "true", "True", "TRUE", "false"),
    *("2013-01-01", "2013-01-01T02:30:00Z", "2013-01-01 02:30:00 +2", "=", "<<"),
]


@pytest.mark.parametrize("style", ["{}", "'{}'", '"{}"'], ids=["plain", "single", "double"])
def test_a_value_of_yaml_is_the_text_that_stands_in_the_file(tmp_path: Path, style: str) -> None:
    lines = [f"k{number}: {style.format(text)}" for number, text in enumerate(AS_WRITTEN)]
    (tmp_path / "c").write_text(
        "\n".join(["name: 007", "config:", *(f"  {each}" for each in lines)])
    )
    config = {f"k{number}": text for number, text in enumerate(AS_WRITTEN)}
    assert read_connectors(tmp_path / "c") == [("007", config)]


def test_a_number_of_json_is_the_text_that_stands_in_the_file(tmp_path: Path) -> None:
    numbers = ["1.10", "1e3", "1E400", "-0", "0.0", "12345678901234567890123", "1.000", "NaN"]
    members = ", ".join(f'"k{place}": {text}' for place, text in enumerate(numbers))
    (tmp_path / "c").write_text(f'{{"name": 7, "config": {{{members}, "t": true, "f": false}}}}')
    config = {f"k{place}": text for place, text in enumerate(numbers)}
    assert read_connectors(tmp_path / "c") == [("7", config | {"t": "true", "f": "false"})]


def test_anchors_and_merged_mappings_of_yaml_are_read(tmp_path: Path) -> None:
    text = "- &a {name: a, key: 01, other: no}\n- {<<: *a, name: b, key: 02}"
    (tmp_path / "c").write_text(text)
    found = dict(read_connectors(tmp_path / "c"))
    assert found["b"] == {"name": "b", "key": "02", "other": "no"}


@pytest.mark.parametrize(
    "tag", ["!!int 5", "!!bool yes", "!!python/name:os.system x", "!!binary aa=="]
)
def test_a_tag_that_would_make_something_else_of_a_value_is_refused(
    tag: str, run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(f"name: x\nkey: {tag}")
    assert run("create", "-f", "c", "--url", cluster.url).code == 2
    assert cluster.asked == []


@pytest.fixture
def files(run: Run) -> None:  # noqa: ARG001  # its folder
    """Two files, and a folder with two more, one of them in a folder of that."""
    Path("a.yaml").write_text("name: a")
    Path("b.json").write_text('{"name": "b"}')
    inner = Path("folder/inner")
    inner.mkdir(parents=True)
    for place, name in (("d.yml", "d"), ("c.yaml", "c"), ("README.md", "no"), ("c.yaml~", "no")):
        (inner.parent / place).write_text(f"name: {name}")
    (inner / "e.json").write_text('{"name": "e"}')


ASKED = [
    (["-f", "a.yaml", "-f", "b.json"], "ab"),
    (["-f", "b.json", "-f", "a.yaml", "-f", "b.json"], "ba"),
    (["-f", "folder", "-f", "a.yaml"], "cda"),
    (["-f", "folder", "-R"], "cde"),
    (["-f", "folder/inner", "-f", "-"], "es"),
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("verb", ["create", "apply", "diff", "plan"])
@pytest.mark.parametrize(("given", "names"), ASKED)
def test_a_verb_takes_all_files_and_folders_that_are_given(
    given: list[str],
    names: str,
    verb: str,
    run: Run,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"name: s")))
    run(verb, *given, "--url", cluster.url, *(["--group", "g"] if verb == "plan" else []))
    assert "".join(_names_in(cluster.asked)) == names


@pytest.mark.parametrize("verb", ["create", "apply", "diff"])
def test_a_config_without_a_name_gets_one_on_the_command_line(
    verb: str, run: Run, cluster: Cluster
) -> None:
    Path("a.json").write_text('{"tasks.max": "1"}')
    Path("b.json").write_text('{"name": "b", "config": {}}')
    run(verb, "-f", "a.json", "-f", "b.json", "-n", "a", "--url", cluster.url)
    assert "".join(_names_in(cluster.asked)) == "ab"
    assert run(verb, "-f", "a.json", "--url", cluster.url).code == 2


def _names_in(asked: list[Asked]) -> list[str]:
    """The connectors in requests, in their order."""
    names = list[str]()
    for _, path, body in asked:
        if path.endswith("/config/diff"):
            names.append(path.split("/")[2])
        elif isinstance(body, dict):
            names += [each["name"] for each in body.get("connectors", [body])]
    return names


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("verb", ["create", "apply", "diff", "plan"])
def test_nothing_is_sent_if_a_file_of_several_makes_no_sense(
    verb: str, run: Run, cluster: Cluster
) -> None:
    Path("second.json").write_text(json.dumps([{"name": "a"}]))
    Path("empty").mkdir()
    for wrong, said in (
        ("second.json", "a.yaml and second.json both have a connector a: which one is meant?"),
        ("empty", "empty is a folder without a .json, .yaml, .yml file"),
    ):
        ended = run(verb, "-f", "a.yaml", "-f", wrong, "--url", cluster.url)
        assert ended == (2, "", f"fairlead: {said}\n")
    assert cluster.asked == []
