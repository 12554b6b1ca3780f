"""The rules for the SQL of a transform, and why a query is refused.

A query may use its input and functions that depend only on their arguments. Permission to create a
connector must not include running programs, reading files or inspecting the node. With the setting
`sql.allow` an operator permits further constructs by name.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ...untrusted.backtracking import flaw_in_backtracking
from .query import SAMPLE, SCRIPT, QueryUse

_SETTING: Final = "sql.allow"

_GROUPS: Final[Mapping[str, str]] = {
    "calls any method of Java": "java_method reflect try_reflect",
    "depends on the clock": (
        "now curdate current_date current_time current_timestamp current_timezone localtime"
        " localtimestamp unix_timestamp()"
    ),
    "is random": f"rand randn random randstr uniform uuid shuffle {SAMPLE}",
    "depends on how Spark distributes the work": "monotonically_increasing_id spark_partition_id",
    "reveals details of the node": (
        "current_catalog current_database current_path current_schema current_user"
        " input_file_block_length input_file_block_start input_file_name session_user user version"
    ),
    "reads files that its arguments name": (
        "from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf"
    ),
    "reads what a DOCTYPE in its argument names, from files and other hosts": (
        "xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short"
        " xpath_string"
    ),
}
ENVIRONMENT: Final = {name: why for why, names in _GROUPS.items() for name in names.split()}
"""Functions that depend on more than their arguments, each with the reason of its refusal."""

_WORDS: Final = """
    current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user localtime localtimestamp session_user user
"""
WORDS: Final = frozenset(_WORDS.split())
"""Such functions that need no parentheses; if there is a column of that name, it is the column."""

_TABLE_FUNCTIONS: Final = """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack
    variant_explode variant_explode_outer
"""
TABLE_FUNCTIONS: Final = frozenset(_TABLE_FUNCTIONS.split())
"""Table functions that depend only on their arguments."""

_SCRIPT: Final = "ScriptTransformation"


def flaws(use: QueryUse, builtin: Collection[str], allowed: Collection[str]) -> list[str]:
    """Return why a query is refused; empty if it may run.

    `builtin` are Spark's built-in functions, and `allowed` the names in the setting.
    """
    return [
        *_other_flaws(use, allowed),
        *(_table_flaw(name) for name in sorted(use.relations) if not _is_open(name, allowed)),
        *_function_flaws(use, builtin, allowed),
        *(
            f"the table function {name} depends on more than its arguments{_remedy(name)}"
            for name in sorted(use.table_functions - TABLE_FUNCTIONS)
            if name not in allowed
        ),
        *(
            f"the regular expression of {name} is computed, and may be one that Java matches for"
            f" ever: write it as a literal{_remedy(name)}"
            for name in sorted(use.computed.difference(allowed))
        ),
        *(
            f"the expression {pattern} {flaw}"
            for pattern in sorted(use.patterns)
            if (flaw := flaw_in_backtracking(pattern, is_whole=False))
        ),
    ]


def suspects(use: QueryUse, columns: Collection[str], allowed: Collection[str]) -> list[str]:
    """Return the words of a query that are functions if its plan depends on the environment.

    `columns` are those of its input. If the query has an allowed function of that kind, words that
    are names of columns are taken as columns.
    """
    opened = any(name.removesuffix("()") in allowed for name in use.functions)
    known = {column.lower() for column in columns} if opened else set[str]()
    return sorted((use.words & WORDS) - set(allowed) - known)


def told_function(name: str) -> str:
    """Return why a function is refused."""
    plain = name.removesuffix("()")
    why = ENVIRONMENT.get(name) or ENVIRONMENT.get(plain)
    if why is None:
        return f"Spark has no built-in function {plain}{_remedy(plain)} if the node has it"
    return f"the function {plain} {why}{_remedy(plain)}"


def _function_flaws(
    use: QueryUse, builtin: Collection[str], allowed: Collection[str]
) -> Iterator[str]:
    for name in sorted(use.functions):
        plain = name.removesuffix("()")
        is_free = plain in builtin and not {name, plain} & ENVIRONMENT.keys()
        if not is_free and plain not in allowed:
            yield told_function(name)


def _other_flaws(use: QueryUse, allowed: Collection[str]) -> Iterator[str]:
    other = sorted(use.other)
    if _SCRIPT in use.other:
        other = [name for name in other if not name.startswith("Script")]
        if SCRIPT not in allowed:
            yield f"TRANSFORM … USING runs a program{_remedy(SCRIPT)}"
    if other:
        yield f"only a query can be a transform: this holds {', '.join(other)}"


def _is_open(relation: str, allowed: Collection[str]) -> bool:
    """Return whether a table, or the format or schema before its name, is allowed."""
    parts = relation.split(".")
    return any(".".join(parts[:count]) in allowed for count in range(1, len(parts) + 1))


def _table_flaw(name: str) -> str:
    first = name.partition(".")[0]
    return f"{name} is not its input: a transform can read only the table input{_remedy(first)}"


def _remedy(name: str) -> str:
    return f"; the node's setting {_SETTING}={name} allows it"
