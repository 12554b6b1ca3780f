# pyright: basic
"""Rows, bad rows and errors are the same, whether Arrow may read proved files or not."""

import json
import re
import shutil
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run

from fairlead.runtime.pipeline.formats.evolution.policy import EVOLUTION
from fairlead.runtime.pipeline.stores.files.source import reading
from fairlead_tests.connectors.sinks import staged
from fairlead_tests.tasks.memory_ledger import MemoryLedger

pytestmark = pytest.mark.spark

SCHEMA = "n INT, at TIMESTAMP, s STRING"
GOOD = "n,at,s\n" + "".join(f"{n},2024-01-01T00:00:{n % 60:02}Z,s{n}\n" for n in range(200))
LATE = 40_000
"""So many rows are in more than one chunk of a proof."""


def late(row: bytes) -> bytes:
    """Return a long file whose last row is bad."""
    rows = "".join(f"{n},2024-01-01T00:00:00Z,x\n" for n in range(LATE))
    return b"n,at,s\n" + rows.encode() + row


CASES: dict[str, tuple[dict[str, bytes], dict[str, str]]] = {
    "a late byte is not UTF-8": ({"b": late(b"1,,\xff\n")}, {}),
    "a late value is bad": ({"b": late(b"1x,,a\n")}, {}),
    "another header": ({"b": b"n,s,at\n1,a,\n"}, {}),
    "an empty header": ({"b": b"\n1,,a\n"}, {}),
    "a quote is never closed": ({"b": late(b'1,,"a\n')}, {}),
    "bad rows are tolerated": (
        {"b": late(b"1x,,a\n2,never,b\n3,,c\n"), "c": late(b"1,,\xff\n")},
        {"errors.tolerance": "all"},
    ),
    "no row of a file is good": (
        {"b": b"n,at,s\nx,,a\n", "c": b"\xef\xbb\xbf", "d": b"n,at,s\n", "e": b""},
        {"errors.tolerance": "all"},
    ),
    "columns are added, left out and moved": (
        {"b": b"s,more,n\nx,1,7\n", "c": b"n\n8\n", "d": b"more,at,N\ny,2024-01-01T00:00:00Z,9\n"},
        {"source.schema.evolution": "add-columns"},
    ),
}


PIECES: tuple[bytes, ...] = (
    b"",
    b"n,at,s\n",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbfn,at,s\n5,,m\n",
    b"n,at,s\n1x,,a\n",
    b'n,at,s\n6,,"two\nlines"\n',
    b"n,at,s\n7,,q",
    b"n,at,s\r\n8,,r\r\n",
    b"s,n\nt,9\n",
    b"n,at,s,more\n10,,u,v\n",
    b"n,at,s\n11,2024-01-01 00:00:00,w\n",
    b"n,at,s\n12,,\xff\n",
    b'n,at,s\n"13",,""\n',
    b"n,at,s\n1,2,3,4\n",
    b"\nn,at,s\n14,,x\n",
    GOOD.encode(),
)
"""Files that take different ways through a batch."""


QUICK: Final = ("bad rows are tolerated",)
"""The cases that are not a soak's: each runs both lanes."""


def drawn(seed: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return some of them with settings, by a seed."""
    random = Random(seed)
    files = {f"f{number}": random.choice(PIECES) for number in range(random.randint(1, 6))}
    evolution = random.choice(("fail", "add-columns", "dead-letter", "widen", "leave-out"))
    config = {
        "errors.tolerance": random.choice(("all", "all", "none")),
        "batch.max.bytes": random.choice(("1", "300", "100000000")),
    }
    return files, config if evolution == "fail" else {**config, EVOLUTION: evolution}


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(each, marks=[] if each in QUICK else pytest.mark.soak) for each in CASES),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100)),
    ],
)
def test_rows_bad_rows_and_errors_are_the_same_in_both_lanes(
    run: Run,
    ledger: MemoryLedger,
    folders: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: str | int,
) -> None:
    monkeypatch.setattr(reading, "_LEAST_PARTED", 1)
    files, more = CASES[case] if isinstance(case, str) else drawn(case)
    (tmp_path / "in" / "a.csv").write_text(GOOD)
    for name, text in files.items():
        (tmp_path / "in" / f"{name}.csv").write_bytes(text)

    def outcome(lane: str) -> tuple[list[Any], ...]:
        out, bad = tmp_path / "out", tmp_path / "bad"
        config = {"source.format": "csv", "source.schema": SCHEMA, "sink.format": "parquet"}
        if "errors.tolerance" in more:
            config["errors.deadletterqueue.path"] = str(bad)
        reports = run({**folders, **config, **more, "engine.lane": lane})
        # Spark says FAILED_READ_FILE before its reason, or not, by what it did before.
        traces = [each.trace for each in reports.statuses if each.trace]
        told = [re.sub(r"\[FAILED_READ_FILE.*?; ", "", each) for each in traces]
        tables = [papq.read_table(each) for each in sorted(out.glob("*.parquet"))]
        rows = [row for each in tables for row in each.to_pylist()]
        lines = "".join(each.read_text() for each in bad.glob("*.json")).splitlines()
        texts = map(json.loads, lines)
        letters = [(each["position"], each["reason"], each.get("raw")) for each in texts]
        assert staged(out) == []
        for each in (out, bad):
            shutil.rmtree(each, ignore_errors=True)
        ledger.logged.clear()
        ledger.accepted.clear()
        return told, sorted(rows, key=repr), sorted(letters, key=repr)

    assert outcome("auto") == outcome("spark")
