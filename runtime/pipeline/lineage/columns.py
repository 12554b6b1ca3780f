# pyright: basic
"""Column lineage of a batch, from Spark's analysed plan.

Spark gives each attribute an expression id. A written column is traced back through aliases
(`Alias`) and generators (`Generate`) to attributes of the frame that was read.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..spi.rows import ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BatchColumns(NamedTuple):
    """The columns of a batch that were read and written, by name with their types.

    `made_of` maps each written column to the read columns that it depends on; None: unknown.
    """

    read: Mapping[str, str]
    written: Mapping[str, str]
    made_of: Mapping[str, frozenset[str]] | None


def columns_of(before: "DataFrame | ArrowTable", after: "DataFrame | ArrowTable") -> BatchColumns:
    """Return the columns of a batch from its rows before and after the transforms."""
    read, written = _types(before), _types(after)
    if before is after:
        return BatchColumns(read, written, {name: frozenset({name}) for name in written})
    plans = _plan(before), _plan(after)
    made_of = made_of_plans(plans[0], plans[1]) if all(plans) else None
    return BatchColumns(read, written, made_of)


def made_of_plans(before: str, after: str) -> Mapping[str, frozenset[str]]:
    """Return the columns of plan `before` that each column of plan `after` depends on.

    Both are Spark's JSON, with a projection of all columns at the root. If a query reads a frame
    twice, Spark gives the second read new expression ids: it is recognised by its column names.
    """
    nodes = json.loads(after)
    read = _named(json.loads(before)[0]["projectList"])
    names = dict(read)
    derived: dict[int, set[int]] = {}
    for node in nodes:
        output = _named(node.get("output") or ())
        if [name for _, name in output] == [name for _, name in read]:
            names.update(output)
        for number, tree in _definitions(node):
            derived.setdefault(number, set()).update(_references(tree))
    written = _named(nodes[0]["projectList"])
    return {name: frozenset(_origins(number, derived, names)) for number, name in written}


def _origins(number: int, derived: Mapping[int, set[int]], names: Mapping[int, str]) -> set[str]:
    origins, visited, waiting = set[str](), set[int](), [number]
    while waiting:
        each = waiting.pop()
        if each in names:
            origins.add(names[each])
        elif each not in visited:
            visited.add(each)
            waiting += derived.get(each, ())
    return origins


def _definitions(node: Any) -> Iterator[tuple[int, Any]]:  # noqa: ANN401  # of JSON, as below
    """Yield the attributes that a plan node defines: expression id and expression."""
    for number, _ in _named(node.get("generatorOutput") or ()):
        yield number, [node["generator"]]
    for tree in _trees(node):
        if _kind(tree[0]) == "Alias":
            yield _number(tree[0]), [tree[1:]]


def _trees(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the expression trees in a part of a plan, each a list of nodes in preorder."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _trees(each)
    elif isinstance(value, list):
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            yield value
        for each in value:
            yield from _trees(each)


def _references(value: Any) -> Iterator[int]:  # noqa: ANN401
    for tree in _trees(value):
        yield from (_number(node) for node in tree if _kind(node) == "AttributeReference")


def _named(trees: Any) -> list[tuple[int, str]]:  # noqa: ANN401
    """Return the expression ids and names of attributes."""
    return [(_number(tree[0]), str(tree[0]["name"])) for tree in trees if "exprId" in tree[0]]


def _number(node: Any) -> int:  # noqa: ANN401
    return int(node["exprId"]["id"])


def _kind(node: Any) -> str:  # noqa: ANN401
    return str(node.get("class", "")).rpartition(".")[2]


def _types(rows: "DataFrame | ArrowTable") -> Mapping[str, str]:
    schema: Any = cast("Any", rows).schema
    if hasattr(schema, "fields"):
        return {each.name: each.dataType.simpleString() for each in schema.fields}
    return {each.name: str(each.type) for each in schema}


def _plan(rows: "DataFrame | ArrowTable") -> str:
    """Return a frame's analysed plan as JSON; empty for Spark Connect and for Arrow tables."""
    select: Any = getattr(rows, "select", None)
    frame = select("*") if select is not None and hasattr(rows, "_jdf") else None
    return str(frame._jdf.queryExecution().analyzed().toJSON()) if frame is not None else ""  # noqa: SLF001
