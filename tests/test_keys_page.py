"""runtime/KEYS.md has every key of every built-in type, and every setting of a node.

`pytest tests/test_keys_page.py --rewrite-samples` writes the page again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from fairlead.runtime.config.keys import SETTINGS
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import Definition
from fairlead.runtime.pipeline.transforms.types import (
    find_predicate,
    find_transform,
    predicate_names,
    transform_names,
)
from fairlead_tests import TESTS

PAGE = TESTS.parent / "runtime" / "KEYS.md"
README = TESTS.parent / "README.md"
HEAD = """\
# Keys

Every key of a connector's config, and every setting of a node, by name; [README.md](../README.md)
explains them in their places. `fairlead explain KEY` shows one of them, and
`fairlead describe plugin TYPE --search WORD` searches. This page is written by
`pytest tests/test_keys_page.py --rewrite-samples`.
"""
BUILT_IN = tuple(
    f"{end}.type={name}" for end in ("source", "sink") for name in ("jdbc", "kafka", "postgres")
)
FILES = {"Source": "source.type=files", "Sink": "sink.type=files"}
OF_ALL = "All connectors"
OF_NODE = "Settings of a node"
Row = tuple[str, str, str, str]
"""Name, type, default, and what it means."""


def row_of(key: Definition) -> Row:
    usual = "required" if key.required else key.default_text or ""
    return key.name, key.type.value.lower(), usual, key.documentation


def tables() -> dict[str, list[Row]]:
    """The rows of each section of the page."""
    found: dict[str, list[Row]] = {OF_ALL: []}
    keys = SparkPipeline.config()
    for key in (*keys.definitions, *keys.families):
        ends = [FILES[each] for each in FILES if key.name.startswith(f"{each.lower()}.")]
        section = ends[0] if ends and not key.name.endswith(".type") else OF_ALL
        found.setdefault(section, []).append(row_of(key))
    optional = SparkPipeline.optional_keys()
    found |= {each: [row_of(key) for key in optional[each]] for each in BUILT_IN}
    found |= dict(_of_transforms())
    found[OF_NODE] = [
        (name, each.type.value.lower(), str(each.default), each.documentation)
        for name, each in SETTINGS.items()
    ]
    return found


def _of_transforms() -> Iterator[tuple[str, list[Row]]]:
    for title, names, find in (
        ("Transforms", transform_names(), find_transform),
        ("Predicates", predicate_names(), find_predicate),
    ):
        rows: list[Row] = []
        for name in sorted(names):
            if not (kind := find(name)).__module__.startswith("fairlead.runtime."):
                continue
            keys: Iterable[Definition] = kind.config().definitions
            prefix = f"{title.lower()}.NAME."
            rows += [
                (
                    *row_of(replace(key, name=f"{prefix}{key.name}"))[:3],
                    f"`{name}`: {key.documentation}",
                )
                for key in keys
            ]
        yield title, rows


def page_of(found: Mapping[str, list[Row]]) -> str:
    parts = [HEAD]
    for title, rows in found.items():
        parts.append(f"\n## {title}\n\n| key | type | default | meaning |\n|---|---|---|---|\n")
        parts += [f"| {' | '.join(_cells(row))} |\n" for row in sorted(rows)]
    return "".join(parts)


def _cells(row: Row) -> list[str]:
    name, kind, usual, told = row
    shown = repr(usual)[1:-1] if usual.strip() != usual or not usual.isprintable() else usual
    cells = (f"`{name}`", kind, f"`{shown}`" if shown else "", told)
    return [re.sub(r"\s+", " ", each).replace("|", "\\|") for each in cells]


def test_the_page_has_every_key_with_its_type_and_default(pytestconfig: pytest.Config) -> None:
    page = page_of(tables())
    if pytestconfig.getoption("--rewrite-samples"):
        PAGE.write_text(page)
    there = _keys_of(PAGE.read_text())
    assert there == _keys_of(page), "pytest tests/test_keys_page.py --rewrite-samples writes it"
    assert "(runtime/KEYS.md)" in README.read_text()


def _keys_of(page: str) -> list[tuple[str, ...]]:
    """The sections and rows of a page, without what a key means."""
    lines = (line for line in page.splitlines() if line.startswith(("| `", "## ")))
    return [tuple(re.split(r"(?<!\\) \| ", line)[:3]) for line in lines]


def test_a_key_with_a_value_in_a_table_of_readme_has_its_default() -> None:
    usual: dict[str, set[str]] = {}
    for name, _, default, _ in (row for rows in tables().values() for row in rows):
        usual.setdefault(name, set()).add("" if default == "required" else default)
    cells = (line.split(" | ")[0] for line in README.read_text().splitlines() if line[:3] == "| `")
    told = (each for cell in cells for each in re.findall(r"`([a-z][\w.]*)=([^`]*)`", cell))
    assert [each for each in told if each[1] not in usual.get(each[0], {each[1]})] == []
