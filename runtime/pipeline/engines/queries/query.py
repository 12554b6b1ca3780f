# pyright: basic, reportCallIssue=false, reportOptionalCall=false
"""The functions, tables and other constructs of a query, from the plan of Spark's parser.

Parsing does not run the query and opens no files. All parts of the plan are visited, including
fields that are no child nodes (window definitions, tables of a WITH), so that no syntax can hide a
construct. Nodes that are not known to be harmless are listed as `other`.
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
"""The name of `TRANSFORM … USING` in the setting `sql.allow`."""
SAMPLE: Final = "tablesample"
"""The name of TABLESAMPLE among functions; the parser makes a LIMIT of a number of ROWS."""

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
"""The prefixes of expressions whose value depends on more than their arguments."""
_CLOCK_LITERAL: Final = re.compile(
    r"\b(?:date|timestamp\w*)\s*['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE
)
"""A literal with the current time; the parser replaces it by its value, so the plan lacks it."""


_MATCHES: Final = """
    regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace
    regexp_substr rlike split
"""
_MATCHING: Final = frozenset(_MATCHES.split())
"""Functions whose second argument is a regular expression."""


@dataclass(slots=True)
class QueryUse:
    """The constructs of a query: names in lower case, with dots between their parts.

    A function without arguments has parentheses, `now()`. `relations` are the tables except `input`
    and those that a WITH defines in scope. `words` are names of columns or, if there is no such
    column, of functions: `current_user`. `other` has the parser's names of all other nodes.
    `patterns` are the literals that are regular expressions of Java; `computed` has the functions
    whose expression is no literal.
    """

    functions: set[str] = field(default_factory=set[str])
    table_functions: set[str] = field(default_factory=set[str])
    relations: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])
    other: set[str] = field(default_factory=set[str])
    patterns: set[str] = field(default_factory=set[str])
    computed: set[str] = field(default_factory=set[str])


def use_of(plan: JavaObject) -> QueryUse:
    """Return the constructs of a parsed plan."""
    use = QueryUse()
    text = plan.origin().sqlText()
    if text.isDefined() and _CLOCK_LITERAL.search(text.get()):
        use.functions.add("now()")
    waiting: list[tuple[object, frozenset[str]]] = [(plan, frozenset({INPUT}))]
    while waiting:
        node, tables = waiting.pop()
        if isinstance(node, JavaObject):
            kind = str(node.getClass().getName())
            waiting.extend(_visit(node, kind, tables, use))
    return use


def builtin_functions(jvm: JVMView) -> frozenset[str]:
    """Return the names of Spark's built-in functions."""
    registry = scala_object(jvm, f"{_ANALYSIS}FunctionRegistry")
    names = registry.functionSet().mkString(",").split(",")
    return frozenset(_short(name) for name in names)


def has_current(plan: JavaObject, jvm: JVMView) -> bool:
    """Return whether an analysed plan depends on the clock, the user or the like."""
    pattern = scala_object(jvm, f"{_CATALYST}trees.TreePattern").CURRENT_LIKE()
    return bool(plan.containsPattern(pattern))


def scala_object(jvm: JVMView, name: str) -> JavaObject:
    """Return a Scala object of a JVM."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def java_class(jvm: JVMView, name: str) -> JavaObject:
    """Return a class of a JVM."""
    return reduce(getattr, name.split("."), jvm)


def _visit(
    node: JavaObject, kind: str, tables: frozenset[str], use: QueryUse
) -> Iterator[tuple[object, frozenset[str]]]:
    """Record a node, and yield its parts, each with the tables in its scope."""
    if kind.startswith(("scala.collection.", "scala.Some", "scala.Tuple")):
        parts = node.iterator() if kind.startswith("scala.coll") else node.productIterator()
        yield from ((each, tables) for each in _iterate(parts))
        return
    if not kind.startswith("org.apache.spark.sql."):
        return
    name = kind.rpartition(".")[2].rstrip("$")
    if not _is_harmless(kind, name):
        use.other.add(name)
    if name == "UnresolvedWith":
        yield from _visit_with(node, tables)
        return
    _record_use(node, name, tables, use)
    _record_match(node, name, use)
    if kind.startswith((_CATALYST, "org.apache.spark.sql.execution.")):
        yield from ((each, tables) for each in _fields(node))


def _visit_with(
    node: JavaObject, tables: frozenset[str]
) -> Iterator[tuple[object, frozenset[str]]]:
    """Yield the tables of a WITH, with the earlier ones in their scope, and then its query."""
    may_recur = bool(node.allowRecursion())
    for relation in _iterate(node.cteRelations().iterator()):
        name = str(relation.productElement(0)).lower()
        yield relation.productElement(1), tables | {name} if may_recur else tables
        tables |= {name}
    yield node.child(), tables


def _record_use(node: JavaObject, name: str, tables: frozenset[str], use: QueryUse) -> None:
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


def _record_match(node: JavaObject, name: str, use: QueryUse) -> None:
    """Record the expression that a node matches with."""
    if name == "RLike":
        function, pattern = "rlike", node.right()
    elif name == "UnresolvedFunction" and node.arguments().size() > 1:
        function, pattern = _dotted(node.nameParts()), node.arguments().apply(1)
    else:
        return
    if function not in _MATCHING:
        return
    is_literal = str(pattern.getClass().getName()).endswith(".Literal")
    if is_literal and pattern.dataType().typeName() == "string":
        use.patterns.add(str(pattern.value()))
    elif not is_literal:
        use.computed.add(function)


def _fields(node: JavaObject) -> Iterator[JavaObject]:
    """Yield the fields of a node; a node that is no Scala product, such as a row, has none."""
    try:
        fields = node.productIterator()
    except Py4JNetworkError:
        raise
    except Py4JError:
        return
    yield from _iterate(fields)


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
    return _short(".".join(str(name) for name in _iterate(names.iterator())))


def _short(name: str) -> str:
    name = name.lower()
    for prefix in _SYSTEM:
        name = name.removeprefix(prefix)
    return name


def _iterate(iterator: JavaObject) -> Iterator[JavaObject]:
    while iterator.hasNext():
        yield iterator.next()
