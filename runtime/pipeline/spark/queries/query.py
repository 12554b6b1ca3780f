# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""What a query uses, read off the plan that Spark's own parser makes of it.

Parsing runs nothing and opens nothing. All that the parser put into the plan is looked at, the
fields that are no children included (window definitions, tables of a WITH), so that nothing can
hide in a corner of the syntax: what is not known to be harmless is told as `other`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from py4j.java_gateway import JavaObject, JVMView
from py4j.protocol import Py4JError, Py4JNetworkError

INPUT: Final = "input"
SCRIPT: Final = "script"
"""How `TRANSFORM … USING` is told among what a query uses."""
SAMPLE: Final = "tablesample"
"""How TABLESAMPLE is told there; a number of ROWS is a LIMIT for the parser."""

_CATALYST = "org.apache.spark.sql.catalyst."
_PLANS, _ANALYSIS = f"{_CATALYST}plans.logical.", f"{_CATALYST}analysis."
_EXPRESSIONS = (f"{_CATALYST}expressions.", f"{_CATALYST}expressions.aggregate.")
_SYSTEM = ("system.builtin.", "builtin.")

_PLAN_NAMES: Final = """
    Aggregate Deduplicate Distinct Except Filter Generate GlobalLimit HintInfo Intersect Join
    JoinHint LateralJoin LocalLimit LocalRelation Offset OneRowRelation Pivot Project Range
    RebalancePartitions Repartition RepartitionByExpression Sample Sort SubqueryAlias Tail Union
    UnresolvedHint UnresolvedWith Unpivot Window WithWindowDefinition
"""
_ANALYSIS_NAMES: Final = """
    GetColumnByOrdinal MultiAlias ResolvedInlineTable UnresolvedAlias UnresolvedAttribute
    UnresolvedCollation UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator
    UnresolvedHaving UnresolvedInlineTable UnresolvedOrdinal UnresolvedRegex UnresolvedRelation
    UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedStarWithColumns
    UnresolvedStarWithColumnsRenames UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
    UnresolvedTableValuedFunction
"""
_HARMLESS_PLANS: Final = frozenset(_PLAN_NAMES.split())
_HARMLESS_ANALYSIS: Final = frozenset(_ANALYSIS_NAMES.split())
_ENVIRONMENT: Final = ("Current", "Now", "Local", "CallMethod", "InputFile")
"""What the names of expressions begin with that no function of their arguments are."""
_CLOCK_LITERAL: Final = re.compile(
    r"\b(?:date|timestamp\w*)\s*['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE
)
"""A literal that is read off the clock. The parser puts in its value, which tells no more of it."""


@dataclass(slots=True)
class QueryUse:
    """What a query uses: names in small letters, with dots between their parts.

    A function without arguments is told with its parentheses, `now()`. `relations` are the
    tables other than `input` and those that a WITH defines where they are used. `words` are names
    that are columns or, where there is no such column, functions: `current_user`. `other` holds
    the parser's names of what no plain query has.
    """

    functions: set[str] = field(default_factory=set[str])
    table_functions: set[str] = field(default_factory=set[str])
    relations: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    other: set[str] = field(default_factory=set[str])


def use_of(plan: JavaObject) -> QueryUse:
    """Return what a parsed plan uses."""
    use = QueryUse()
    text = plan.origin().sqlText()
    if text.isDefined() and _CLOCK_LITERAL.search(text.get()):
        use.functions.add("now()")
    waiting: list[tuple[object, frozenset[str]]] = [(plan, frozenset({INPUT}))]
    while waiting:
        node, tables = waiting.pop()
        if isinstance(node, JavaObject):
            kind = str(node.getClass().getName())
            waiting.extend(_within(node, kind, tables, use))
    return use


def builtin_functions(jvm: JVMView) -> frozenset[str]:
    """Return the names of the functions that Spark brings along."""
    registry = scala_object(jvm, f"{_ANALYSIS}FunctionRegistry")
    names = registry.functionSet().mkString(",").split(",")
    return frozenset(_short(name) for name in names)


def has_current(plan: JavaObject, jvm: JVMView) -> bool:
    """Tell whether an analysed plan asks for the clock, the user or the like."""
    pattern = scala_object(jvm, f"{_CATALYST}trees.TreePattern").CURRENT_LIKE()
    return bool(plan.containsPattern(pattern))


def scala_object(jvm: JVMView, name: str) -> JavaObject:
    """Return a Scala object of a JVM."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def java_class(jvm: JVMView, name: str) -> JavaObject:
    """Return a class of a JVM."""
    return reduce(getattr, name.split("."), jvm)


def _within(
    node: JavaObject, kind: str, tables: frozenset[str], use: QueryUse
) -> Iterator[tuple[object, frozenset[str]]]:
    """Take note of a node, and yield what is in it, each with the tables that it sees."""
    if kind.startswith(("scala.collection.", "scala.Some", "scala.Tuple")):
        parts = node.iterator() if kind.startswith("scala.coll") else node.productIterator()
        yield from ((each, tables) for each in _each(parts))
        return
    if not kind.startswith("org.apache.spark.sql."):
        return
    name = kind.rpartition(".")[2].rstrip("$")
    if not _is_harmless(kind, name):
        use.other.add(name)
    if name == "UnresolvedWith":
        yield from _with(node, tables)
        return
    _note(node, name, tables, use)
    if kind.startswith((_CATALYST, "org.apache.spark.sql.execution.")):
        yield from ((each, tables) for each in _fields(node))


def _with(node: JavaObject, tables: frozenset[str]) -> Iterator[tuple[object, frozenset[str]]]:
    """Yield the tables of a WITH, each of which sees those before it, and what follows."""
    may_recur = bool(node.allowRecursion())
    for relation in _each(node.cteRelations().iterator()):
        name = str(relation.productElement(0)).lower()
        yield relation.productElement(1), tables | {name} if may_recur else tables
        tables |= {name}
    yield node.child(), tables


def _note(node: JavaObject, name: str, tables: frozenset[str], use: QueryUse) -> None:
    match name:
        case "UnresolvedFunction":
            function = _dotted(node.nameParts())
            use.functions.add(function if node.arguments().size() else f"{function}()")
        case "UnresolvedGenerator":
            use.functions.add(_short(node.name().unquotedString()))
        case "Sample":
            use.functions.add(SAMPLE)
        case "UnresolvedTableValuedFunction":
            use.table_functions.add(_dotted(node.name()))
        case "UnresolvedRelation":
            parts = node.multipartIdentifier()
            relation = _dotted(parts)
            if parts.size() > 1 or relation not in tables:
                use.relations.add(relation)
        case "UnresolvedAttribute" if node.nameParts().size() == 1:
            use.words.add(_dotted(node.nameParts()))


def _fields(node: JavaObject) -> Iterator[JavaObject]:
    """Yield the fields of a node; what is no Scala product, a row of values, has none."""
    try:
        fields = node.productIterator()
    except Py4JNetworkError:
        raise
    except Py4JError:
        return
    yield from _each(fields)


def _is_harmless(kind: str, name: str) -> bool:
    package = kind.rpartition(".")[0] + "."
    if package == _PLANS:
        return name in _HARMLESS_PLANS or name.startswith("SampleMethod")
    if package == _ANALYSIS:
        return name in _HARMLESS_ANALYSIS
    if package in _EXPRESSIONS:
        return name == "CurrentRow" or not name.startswith(_ENVIRONMENT)
    return not kind.startswith("org.apache.spark.sql.execution.") and ".objects." not in kind


def _dotted(names: JavaObject) -> str:
    return _short(".".join(str(name) for name in _each(names.iterator())))


def _short(name: str) -> str:
    name = name.lower()
    for prefix in _SYSTEM:
        name = name.removeprefix(prefix)
    return name


def _each(iterator: JavaObject) -> Iterator[JavaObject]:
    while iterator.hasNext():
        yield iterator.next()
