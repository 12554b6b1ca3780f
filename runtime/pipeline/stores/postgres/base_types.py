"""The types under the types of columns, in the SQL of the catalog.

A domain has the values of its base type, perhaps through other domains, and an array of domains
those of an array. A type of a user's may have the name of a built-in one in another schema, or a
name that begins with `_`, as those of arrays do; so only types of `pg_catalog` are built in.
"""

from typing import Final, LiteralString

_UNDER: Final = """LATERAL (
    SELECT oid, typtype AS type, oid AS array, starts_with(typname::text, '_')::int4 AS lists,
        false AS has_domains, {width}::int4 AS width, {dimensions}::int4 AS dimensions,
        typname::text AS kind
    FROM pg_catalog.pg_type
    WHERE oid = {oid} AND typnamespace = 'pg_catalog'::pg_catalog.regnamespace
    UNION ALL
    (WITH RECURSIVE under AS (
        SELECT oid, typname, typnamespace, typtype, typbasetype, typelem, typtypmod, typndims,
            typarray, 0 AS depth, 0 AS lists, false AS has_domains,
            {width}::int4 AS width, {dimensions}::int4 AS dimensions
        FROM pg_catalog.pg_type
        WHERE oid = {oid} AND typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
        UNION ALL
        SELECT n.oid, n.typname, n.typnamespace, n.typtype, n.typbasetype, n.typelem, n.typtypmod,
            n.typndims, n.typarray, depth + 1, lists + (u.typtype <> 'd')::int4,
            has_domains OR u.typtype = 'd' AND lists > 0,
            CASE WHEN u.typtype = 'd' AND width < 0 THEN u.typtypmod ELSE width END,
            greatest(dimensions, CASE WHEN u.typtype = 'd' AND lists = 0 THEN u.typndims END)
        FROM under u JOIN pg_catalog.pg_type n
            ON n.oid = CASE u.typtype WHEN 'd' THEN u.typbasetype ELSE u.typelem END
            AND (u.typtype = 'd' OR n.typarray = u.oid))
    SELECT u.oid, u.typtype AS type, u.typarray AS array, u.lists, u.has_domains, u.width,
        u.dimensions, repeat('_', u.lists) || CASE s.nspname WHEN 'pg_catalog' THEN u.typname::text
            ELSE '"' || s.nspname || '"."' || u.typname || '"' END AS kind
    FROM under u JOIN pg_catalog.pg_namespace s ON s.oid = u.typnamespace
    ORDER BY u.depth DESC LIMIT 1))"""
"""The usual types first, as the walk takes a while."""


def base_type(
    oid: LiteralString, width: LiteralString = "-1", dimensions: LiteralString = "0"
) -> LiteralString:
    """Return a lateral subquery of the type under a type; the arguments are SQL.

    Its `kind` is the name of a built-in type, and the quoted schema and name of another one, with
    a `_` before it for each array around it; `lists` is their number, and `oid`, `type` and `array`
    are of the type within. `width` (`atttypmod`) and `dimensions` are those of the column, or of
    the outermost domain that has any; `has_domains` tells of domains within an array.
    """
    return _UNDER.format(oid=oid, width=width, dimensions=dimensions)
