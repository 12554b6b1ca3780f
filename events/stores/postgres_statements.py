"""The tables of logs in PostgreSQL, and the statements of a store (`postgres.py`).

What stands in braces are names of the store, and `mine`, with which each write begins: it shares
the lock of the owner's row if that has the epoch of the caller.
"""

from typing import Final

DURABLE: Final = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"""

MAKE: Final = """
SELECT pg_advisory_xact_lock({lock});
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {owners} (
    log text PRIMARY KEY,
    id uuid NOT NULL,
    epoch bigint NOT NULL,
    node text NOT NULL,
    address text NOT NULL,
    folder text NOT NULL,
    heard timestamptz NOT NULL
) WITH (fillfactor = 10);
CREATE TABLE IF NOT EXISTS {commits} (
    log text NOT NULL,
    base_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    epoch bigint NOT NULL,
    total_bytes bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (log, base_offset)
);
CREATE TABLE IF NOT EXISTS {snapshots} (
    log text PRIMARY KEY,
    end_offset bigint NOT NULL,
    body bytea NOT NULL
)"""
"""`total_bytes` counts the bodies up to and with this one, so that nobody has to add them up."""

OWNER: Final = """
SELECT id, epoch, node, address, folder, extract(epoch FROM clock_timestamp() - heard)::float8
FROM {owners} WHERE log = %(log)s"""

FIRST_CLAIM: Final = """
INSERT INTO {owners} (log, id, epoch, node, address, folder, heard)
VALUES (%(log)s, %(id)s, %(least)s, %(node)s, %(address)s, %(folder)s, clock_timestamp())
ON CONFLICT DO NOTHING RETURNING epoch, 0"""

CLAIM: Final = """
UPDATE {owners} SET epoch = greatest(epoch + 1, %(least)s), node = %(node)s, address = %(address)s,
    folder = %(folder)s, heard = clock_timestamp()
WHERE log = %(log)s AND id = %(id)s AND (folder = %(folder)s
    OR heard NOT BETWEEN clock_timestamp() - %(silence)s * interval '1 s'
    AND clock_timestamp() + %(silence)s * interval '1 s')
RETURNING epoch, coalesce(
    (SELECT total_bytes FROM {commits} WHERE log = %(log)s ORDER BY base_offset DESC LIMIT 1), 0)"""
"""A time far ahead is none: the database has another clock than it had."""

MINE: Final = """
WITH mine AS (
    SELECT id, heard FROM {owners} WHERE log = %(log)s AND epoch = %(epoch)s FOR SHARE
), alive AS (
    UPDATE {owners} SET heard = clock_timestamp() FROM mine
    WHERE log = %(log)s AND mine.heard < clock_timestamp() - interval '0.2 s'
)"""

BEAT: Final = "{mine} SELECT 1 FROM mine"

APPEND: Final = """
{mine}, last AS (
    SELECT end_offset, total_bytes FROM {commits}
    WHERE log = %(log)s ORDER BY base_offset DESC LIMIT 1
), appended AS (
    INSERT INTO {commits} (log, base_offset, end_offset, epoch, total_bytes, body)
    SELECT %(log)s, base_offset, end_offset, %(epoch)s, coalesce((SELECT total_bytes FROM last), 0)
        + sum(octet_length(body)) OVER (ORDER BY base_offset), body
    FROM mine, unnest(%(bases)s::bigint[], %(ends)s::bigint[], %(bodies)s::bytea[])
        AS new (base_offset, end_offset, body)
    WHERE (%(bases)s::bigint[])[1] = coalesce((SELECT end_offset FROM last),
        (SELECT end_offset FROM {snapshots} WHERE log = %(log)s), 0)
    RETURNING 1
)
SELECT id, pg_notify(%(channel)s, '') FROM mine WHERE EXISTS (SELECT FROM appended)"""

COMPACT: Final = """
{mine}, last AS (
    SELECT end_offset FROM {commits} WHERE log = %(log)s ORDER BY base_offset DESC LIMIT 1
), placed AS (
    INSERT INTO {snapshots} (log, end_offset, body)
    SELECT %(log)s, %(end)s, %(body)s FROM mine WHERE coalesce((SELECT end_offset FROM last),
        (SELECT end_offset FROM {snapshots} WHERE log = %(log)s), 0) IN (0, %(end)s)
    ON CONFLICT (log) DO UPDATE SET end_offset = excluded.end_offset, body = excluded.body
    RETURNING 1
), removed AS (
    DELETE FROM {commits} USING placed WHERE log = %(log)s
)
SELECT 1 FROM placed"""

READ: Final = """
WITH state AS MATERIALIZED (
    SELECT id, coalesce((SELECT end_offset FROM {snapshots} WHERE log = %(log)s), 0) AS low, (
        SELECT end_offset FROM {commits} WHERE log = %(log)s ORDER BY base_offset DESC LIMIT 1
    ) AS last
    FROM {owners} WHERE log = %(log)s
), page AS MATERIALIZED (
    SELECT base_offset, end_offset, total_bytes, body FROM {commits}
    WHERE log = %(log)s AND base_offset >= %(from)s ORDER BY base_offset LIMIT %(commits)s
)
SELECT id, low, coalesce(last, low), base_offset, end_offset, body
FROM state LEFT JOIN page ON total_bytes < (SELECT min(total_bytes) FROM page) + %(bytes)s
ORDER BY base_offset"""

SNAPSHOT: Final = "SELECT end_offset, body FROM {snapshots} WHERE log = %(log)s"

SETTINGS: Final = """
SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names')"""
