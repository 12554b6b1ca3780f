"""The dashboards are what their script writes, and have the form that Grafana reads.

What they ask is run against a real Prometheus in `test_live.py`. Nobody draws them here.
"""

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from pages.reference import metrics

from fairlead_tests.monitoring.dashboards import FOLDER, NAMES, queries, read_dashboard

by_name = pytest.mark.parametrize("name", NAMES)
OF_PROMETHEUS = {"up", "ALERTS"}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def test_the_dashboards_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-B", FOLDER / "dashboards.py", tmp_path], check=True, timeout=60
    )
    written = {each.name: each.read_text() for each in tmp_path.iterdir()}
    assert written == {each.name: each.read_text() for each in FOLDER.glob("*.json")}
    assert {*written} == {f"{name}.json" for name in NAMES}


def test_what_the_dashboards_ask_for_is_there() -> None:
    known = {*metrics(), *(f"{each}_bucket" for each in metrics()), *OF_PROMETHEUS}
    asked = {
        word
        for each in queries()
        for word in re.findall(r"\b(?:fairlead_\w+|up|ALERTS)\b(?=[{\[ )])", each.expression)
    }
    assert asked - known == set()
    assert len(asked) > 50


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


@by_name
def test_panels_stand_side_by_side_within_the_dashboard(name: str) -> None:
    panels = read_dashboard(name)["panels"]
    places = [each["gridPos"] for each in panels]
    assert [each["id"] for each in panels] == [*range(1, len(panels) + 1)]
    assert all(each["x"] >= 0 and each["x"] + each["w"] <= 24 for each in places)
    assert [pair for pair in combinations(places, 2) if overlap(*pair)] == []


@by_name
def test_a_panel_has_a_title_of_its_own_a_text_and_queries_of_the_chosen_source(name: str) -> None:
    panels = [each for each in read_dashboard(name)["panels"] if "targets" in each]
    titles = [each["title"] for each in panels]
    assert sorted({*titles}) == sorted(titles)
    for each in panels:
        assert each["description"].endswith("."), each["title"]
        assert each["datasource"] == DATASOURCE
        assert each["targets"]
        letters = [target["refId"] for target in each["targets"]]
        assert letters == [*"ABCDEFGH"[: len(letters)]]
        assert all(target["datasource"] == DATASOURCE for target in each["targets"])


@by_name
def test_graphs_begin_at_zero_and_numbers_have_units(name: str) -> None:
    for each in read_dashboard(name)["panels"]:
        defaults: dict[str, Any] = each.get("fieldConfig", {}).get("defaults", {})
        if each["type"] == "timeseries":
            assert defaults["min"] == 0, each["title"]
        if each["type"] in {"timeseries", "stat"}:
            assert defaults["unit"], each["title"]


@by_name
def test_each_choice_of_a_dashboard_is_used_and_each_used_one_is_there(name: str) -> None:
    board = read_dashboard(name)
    chosen = {each["name"] for each in board["templating"]["list"]}
    used = {
        word
        for each in queries()
        if each.panel.startswith(f"{name}: ")
        for word in re.findall(r"\$(\w+)", each.expression)
        if not word.startswith("__")
    }
    assert chosen == {"datasource", *used}
    assert (board["uid"], board["tags"]) == (f"fairlead-{name}", ["fairlead"])
