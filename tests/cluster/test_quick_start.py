"""The quick start: its commands are run word by word, and the samples of the pages look as they do.

docs/start.md has all of them, README the most important ones. `--rewrite-samples` writes what comes
now into both. What differs from run to run, such as numbers, times and which worker has a task, is
compared by its shape.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead_tests.cluster.remains import environment_in
from fairlead_tests.pages import DOCS, HOUSE, README, Sample, samples_in
from fairlead_tests.rest.collector import Collector, collecting

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(600)]
START = DOCS / "start.md"
SHOWN_HOME, SHOWN_URL = "/home/you", "http://127.0.0.1:8083"
FILES, ROWS = 3, 1_000

VARYING = (
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b[0-9a-f]{8}\b", "ID"),
    (r"\d[\d,.]*", "N"),
    (r"not measured yet|N s, pN N s \(N measured\)|N s \(N measured\)", "DOWNTIME"),
    (r".* still has .*", ""),  # a drain may be done before the first look
    (r"^N TIME .*", "N TIME MOVE"),
    (r"N > N", "N"),
    (r"^flights(-N)? wN wN", "RESOURCE wN wN"),
    (r"^(flights-N RUNNING) .*", r"\1"),
)


def shape(lines: tuple[str, ...]) -> list[str]:
    """Lines without what varies; several of one shape behind each other are one."""
    shapes: list[str] = []
    for line in lines:
        told = " ".join(line.split())
        for pattern, name in VARYING:
            told = re.sub(pattern, name, told)
        if shapes[-1:] != [told]:
            shapes.append(told)
    return [each for each in shapes if each]


class Home(NamedTuple):
    """A folder with the file and the data of the quick start, and who gets the node's traces."""

    folder: Path
    environment: dict[str, str]
    collector: Collector

    def run(self, command: str) -> tuple[str, ...]:
        """Run a command as the pages have it; return its lines, as they show them."""
        ended = subprocess.run(
            [sys.executable, "-m", "fairlead.runtime", *command.split()[1:]],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # `down` tells of a node by its log
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        return self.as_shown(ended.stdout)

    def as_shown(self, text: str) -> tuple[str, ...]:
        text = text.replace(str(self.folder), SHOWN_HOME)
        return tuple(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8083", text).splitlines())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    folder = tmp_path / "home"
    landing = folder / "data" / "landing"
    landing.mkdir(parents=True)
    for number in range(FILES):
        rows = (f"{['UA', 'AA', 'DL'][row % 3]},{row},{row % 60 - 20}" for row in range(ROWS))
        text = "\n".join(["carrier,flight,arr_delay", *rows])
        (landing / f"{number}.csv").write_text(f"{text}\n")
    (folder / "deploy").mkdir()
    config = (HOUSE / "deploy" / "flights.yaml").read_text().replace("/data", f"{folder}/data")
    (folder / "deploy" / "flights.yaml").write_text(config)
    settings = {"FAIRLEAD_LISTENERS": "http://127.0.0.1:0", "COLUMNS": "120"}
    with collecting() as collector:
        settings["FAIRLEAD_TRACES_ENDPOINT"] = collector.url
        yield Home(folder, {**environment_in(tmp_path), **settings}, collector)
    if (note := folder / "fairlead-data" / "run" / "node.json").exists():
        pytest.fail(f"the node is left: {note.read_text()}")


def test_the_commands_of_the_quick_start_show_what_the_pages_show(
    home: Home, pytestconfig: pytest.Config
) -> None:
    first, *others, last = samples_in(START)
    assert (first.command, last.command) == ("fairlead up", "fairlead down")
    came: list[Sample] = []
    node = subprocess.Popen(
        [sys.executable, "-m", "fairlead.runtime", "up"],
        cwd=home.folder,
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert node.stdout is not None
    with node, node.stdout as told:
        try:
            came.append(Sample(first.command, home.as_shown(told.readline())))
            for command, _ in others:
                if command == "fairlead status":
                    until_all_is_read(home)
                came.append(Sample(command, home.run(command)))
        finally:
            came.append(Sample(last.command, home.run(last.command)))
    assert node.returncode == 0
    check_traces(home.collector)
    if pytestconfig.getoption("--rewrite-samples"):
        for page in (START, README):
            rewrite(page, came)
    shapes = {each.command: shape(each.shown) for each in came}
    for page in (START, README):
        shown = {each.command: shape(each.shown) for each in samples_in(page)}
        assert shown == {command: shapes[command] for command in shown}


def check_traces(collector: Collector) -> None:
    """All rows were in batches with their phases, each with a link to the epoch of its task."""
    epochs = {each.span_id: each for each in collector.named("epoch")}
    batches = collector.named("batch")
    assert sum(int(each.attributes["fairlead.rows.written"]) for each in batches) == FILES * ROWS
    for batch in batches:
        phases = {each.name for each in collector.spans if each.parent_id == batch.span_id}
        assert {"run", "publish"} <= phases <= {"plan", "wait", "run", "commit", "publish"}
        (epoch,) = (epochs[each] for each in batch.links)
        assert epoch.attributes["fairlead.epoch"] == batch.attributes["fairlead.epoch"]
    moved = [each for each in collector.named("handover") if "fairlead.from" in each.attributes]
    assert {each.parent_id for each in moved} <= epochs.keys()
    assert any("fairlead.downtime_ms" in each.attributes for each in moved)


def until_all_is_read(home: Home) -> None:
    """Wait until all rows count: the sample has them."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        status = json.loads("\n".join(home.run("fairlead status -o json")))
        counts = [each["progress"]["rows_out"] for each in status["tasks"] if "progress" in each]
        idle = all(each.get("progress", {}).get("unpublished") == 0 for each in status["tasks"])
        if sum(counts) == FILES * ROWS and idle:
            return
        time.sleep(0.5)
    pytest.fail("the rows of the quick start were not read")


def rewrite(page: Path, came: Sequence[Sample]) -> None:
    """Write what came into a page, in the place of what it shows."""
    text = page.read_text()
    new = {each.command: each.shown for each in came}
    for command, shown in samples_in(page):
        line = re.search(rf"^( *)\$ {re.escape(command)}(?:  #.*)?\n", text, re.MULTILINE)
        assert line is not None
        before, after = (
            "".join(f"{line[1]}{each}".rstrip() + "\n" for each in lines)
            for lines in (shown, new[command])
        )
        assert text.startswith(before, line.end())
        text = text[: line.end()] + after + text[line.end() + len(before) :]
    page.write_text(text)
