"""What `fairlead.testing` finds in a source or a sink that does not keep its promises."""

import ast
import inspect
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairlead.sdk
from fairlead.sdk import (
    Advance,
    CommitId,
    Document,
    Fetched,
    FetchingSource,
    Limit,
    Manifest,
    OffsetRefused,
    Resource,
    Sink,
    Token,
    identity,
)
from fairlead.testing import check_sink, check_source

HOUSE = Path(__file__).parents[1]
PARTITION = {"list": "a"}
ROWS = pa.table({"id": [1, 2, 3]})


@dataclass
class Listed(FetchingSource):
    """Reads a list, and may do so wrongly."""

    ids: tuple[int, ...] = (1, 2, 3)
    skips: int = 0
    starts_anew: bool = False
    grows: bool = False

    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        start = offsets.get(identity(PARTITION))
        begin = int(str(start["read"])) if start else 0
        end = min(len(self.ids), begin + limit.rows)
        if begin >= end:
            return None
        taken = self.ids[begin + (self.skips if begin else 0) : end]
        if self.grows:
            self.ids = (*self.ids, 9)
        told = None if self.starts_anew else start
        return Fetched(pa.table({"id": taken}), (Advance(PARTITION, told, {"read": end}),))


@dataclass
class Published(Sink["pa.Table"]):
    """Keeps batches in memory, and may do so wrongly."""

    takes_arrow = True
    target: list[dict[str, Any]]
    staged: dict[CommitId, list[dict[str, Any]]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    shows: bool = False
    doubles: bool = False
    forgets: bool = False
    sweeps_all: bool = False
    counts_none: bool = False

    def stage(self, rows: "pa.Table", commit_id: CommitId, input_bytes: int) -> Manifest:
        self.staged[commit_id] = rows.to_pylist()
        if self.shows:
            self.target += rows.to_pylist()
        return Manifest("", "", rows.num_rows, input_bytes, 0 if self.counts_none else 1)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        del manifest
        if self.doubles or sequence not in self.done:
            self.done.add(sequence)
            rows = self.staged.get(commit_id, [])
            self.target += rows[1:] if self.forgets else rows

    def discard(self, commit_id: CommitId) -> None:
        self.staged.pop(commit_id, None)

    def sweep(self, resource: Resource, token: Token) -> None:
        del resource
        for each in [*self.staged]:
            if self.sweeps_all or each.token <= token:
                del self.staged[each]


def sink(**wrong: bool) -> tuple[Callable[[], Published], list[dict[str, Any]]]:
    """Return what makes the sink anew over what is durable, and its target."""
    target, staged, done = list[dict[str, Any]](), dict[CommitId, Any](), set[int]()
    return lambda: Published(target, staged, done, **wrong), target


def test_a_source_that_keeps_its_promises_passes_and_its_rows_are_told() -> None:
    assert check_source(Listed) == [{"id": 1}, {"id": 2}, {"id": 3}]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"skips": 1}, "rows are missing"),
        ({"starts_anew": True}, "an advance of {'list': 'a'} begins at None"),
        ({"grows": True}, "the source still has more after 10000 batches"),
    ],
    ids=["loses a row between batches", "begins elsewhere", "never ends"],
)
def test_a_source_that_does_not_is_told_what_it_did(wrong: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_source(lambda: Listed(**wrong))


def test_a_source_whose_offsets_users_may_not_set_is_told() -> None:
    def refuse(config: Mapping[str, str], partition: Document, offset: Document | None) -> None:
        raise OffsetRefused(f"offset: {config} {partition} {offset}")

    with pytest.raises(OffsetRefused, match="'a': 'b'"):
        check_source(Listed, refuse, {"a": "b"})


def test_a_sink_that_keeps_its_promises_passes() -> None:
    make, target = sink()
    check_sink(make, ROWS, lambda: target)
    assert target == [{"id": 1}, {"id": 2}, {"id": 3}] * 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("shows", "was staged and not published: 0 rows are missing and 3 are too many"),
        ("doubles", "was published: 0 rows are missing and 3 are too many"),
        ("forgets", "was published: 1 rows are missing and 0 are too many"),
        ("sweeps_all", "was published: 3 rows are missing"),
        ("counts_none", "says that it has no files"),
    ],
)
def test_a_sink_that_does_not_is_told_what_it_did(wrong: str, message: str) -> None:
    make, target = sink(**{wrong: True})
    with pytest.raises(AssertionError, match=message):
        check_sink(make, ROWS, lambda: target)


EXAMPLES = sorted(HOUSE.glob("deploy/*/fairlead_*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.stem)
def test_an_example_imports_from_the_sdk_alone(example: Path) -> None:
    tree = ast.parse(example.read_text())
    named = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    assert {each for each in named if (each or "").startswith("fairlead.")} == {"fairlead.sdk"}


def test_all_that_the_sdk_offers_is_documented() -> None:
    offered = {name: getattr(fairlead.sdk, name) for name in fairlead.sdk.__all__}
    silent = [
        name
        for name, each in offered.items()
        if (inspect.isclass(each) or inspect.isfunction(each)) and not each.__doc__
    ]
    assert silent == []


def test_a_plugin_may_define_and_call_methods_by_their_former_names() -> None:
    class Kind(fairlead.sdk.SourceType):
        @classmethod
        def look(cls, config: Mapping[str, str], outside: Any) -> Any:
            return replace(super().look(config, outside), warnings=("old",))  # type: ignore[misc]

        @classmethod
        def keeps_outside(cls, _: Mapping[str, str]) -> bool:
            return True

    class Old(Listed):
        def put_off(self, ranges: Sequence[pa.Table]) -> str:
            return f"{len(ranges)} pages"

    error = fairlead.sdk.BadInput("a page is torn")
    error.is_put_off = True
    assert Kind.probe({}, fairlead.sdk.Outside()) == fairlead.sdk.Look(warnings=("old",))
    assert (Kind.has_external_state({}), Old().defer([ROWS, ROWS])) == (True, "2 pages")
    assert error.is_deferred


def test_the_tests_of_an_example_pass(tmp_path: Path) -> None:
    """They are run as their author runs them: in a folder of their own, without this suite."""
    for each in sorted((HOUSE / "deploy" / "sqlite").glob("*.py")):
        shutil.copy(each, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in told.stdout, told.stdout + told.stderr


def test_the_sdk_loads_neither_spark_nor_arrow_nor_actors() -> None:
    heavy = "{'pyspark', 'pyarrow', 'thespian', 'lmdb'} & {*sys.modules}"
    code = f"import sys, fairlead.sdk, fairlead.testing; print({heavy} or 'none')"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert told == "none\n"
