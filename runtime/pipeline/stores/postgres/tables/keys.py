"""The config keys of the PostgreSQL source, and the errors of keys that do not fit together.

Names and values are those of Kafka Connect's JDBC source and of Debezium's PostgreSQL connector,
with `source.` before them, so that a config of either can be taken over. `source.mode` selects how
rows are found: `xmin` and `log` need no column, `incrementing` and `timestamp` name the columns
that grow, `bulk` reads all rows once. `complaints` rejects keys of one mode beside another, and
keys of tables beside a query.
"""

import re
from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ......actors.settings import SettingType, Value
from ....spi.config import Definition, Importance, Width
from ....spi.keys.kinds import check_patterns, choice_key, flag_key, list_key, number_key, text_key
from ..connecting import connection_keys, flaws_in_url

URL = "source.connection.url"
INCLUDE = "source.table.include.list"
WHITELIST = "source.table.whitelist"
EXCLUDE = "source.table.exclude.list"
QUERY = "source.query"
MODE = "source.mode"
INCREMENTING = "source.incrementing.column.name"
TIMESTAMP = "source.timestamp.column.name"
NON_NULL = "source.validate.non.null"
DELAY_MS = "source.timestamp.delay.interval.ms"
LOOKBACK_MS = "source.lookback.ms"
LOOKBACK_ROWS = "source.lookback.rows"
AUDIT_MS = "source.audit.interval.ms"
SNAPSHOT_MODE = "source.snapshot.mode"
TABLE_POLL_MS = "source.table.poll.interval.ms"
NUMERIC_MAPPING = "source.numeric.mapping"
TIMEZONE = "source.db.timezone"
TOPIC_PREFIX = "source.topic.prefix"
SLOT = "source.slot.name"
DROP_SLOT = "source.slot.drop.on.stop"
PUBLICATION = "source.publication.name"
AUTOCREATE = "source.publication.autocreate.mode"
SKIPPED = "source.skipped.operations"
TASK_SHARE = "task.source.share"
TASK_LOG = "task.source.log"

BULK, INCREMENT, STAMPED = "bulk", "incrementing", "timestamp"
BOTH, XMIN, LOG = "timestamp+incrementing", "xmin", "log"
MODES = (BULK, INCREMENT, STAMPED, BOTH, XMIN, LOG)
FILTERED, ALL_TABLES, DISABLED = "filtered", "all_tables", "disabled"
OPERATIONS = ("c", "u", "d", "t", "none")
INITIAL, INITIAL_ONLY, NO_DATA = "initial", "initial_only", "no_data"
WHEN_NEEDED = "when_needed"
NO_MAPPING, PRECISION_ONLY = "none", "precision_only"
BEST_FIT, EAGER_DOUBLE = "best_fit", "best_fit_eager_double"


def _slot_name(value: Value) -> str | None:
    is_sound = not value or re.fullmatch(r"[a-z0-9_]{1,63}", str(value))
    return None if is_sound else "a slot's name has at most 63 of a-z, 0-9 and _"


def _timezone(value: Value) -> str | None:
    try:
        is_known = not value or bool(ZoneInfo(str(value)))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        is_known = False
    return None if is_known else "is no time zone: Europe/Berlin is one, or UTC"


def _operations(value: Value) -> str | None:
    given = value if isinstance(value, tuple) else ()
    wrong = [each for each in given if each not in OPERATIONS]
    return f"{', '.join(wrong)}: only {', '.join(OPERATIONS)}" if wrong else None


DEFINITIONS: Sequence[Definition] = (
    *connection_keys("source", "Who reads."),
    choice_key(
        MODE,
        "What is read after the snapshot of a table: nothing (bulk), rows that are new by a column "
        "(incrementing), new or changed by times (timestamp, timestamp+incrementing), new or "
        "changed by the transaction that wrote them (xmin: no column is needed, and each look "
        "reads the whole table), or all that the server's log says (log: deletes as well).",
        *MODES,
        importance=Importance.HIGH,
        required=True,
        dependents=(INCREMENTING, TIMESTAMP, SLOT, DROP_SLOT, PUBLICATION, AUTOCREATE, SKIPPED),
    ),
    list_key(
        INCLUDE,
        "The tables to read: regular expressions for the whole `schema.table`. Empty: "
        "all except system tables.",
        importance=Importance.HIGH,
        validator=check_patterns,
        width=Width.LONG,
    ),
    list_key(
        WHITELIST,
        f"The tables to read, as {INCLUDE} or by their bare names.",
        importance=Importance.LOW,
        validator=check_patterns,
    ),
    list_key(
        EXCLUDE,
        "Tables not to read, by regular expressions as well.",
        validator=check_patterns,
        width=Width.LONG,
    ),
    text_key(
        QUERY,
        "A SELECT to read, in place of tables: whole (bulk), or on behind the highest values of "
        "the columns that the mode names. What commits with a lower one is not seen, unless the "
        f"column is an xid8; {DELAY_MS} leaves it time.",
        "",
        width=Width.LONG,
        dependents=(INCLUDE, WHITELIST, EXCLUDE),
    ),
    text_key(
        INCREMENTING,
        "The column that grows with each new row: an integer; or an xid8 with DEFAULT "
        "pg_current_xact_id(), which needs no lookback.",
        "",
    ),
    list_key(
        TIMESTAMP,
        "The columns with the time of the last write; the first that is not null is used.",
    ),
    flag_key(
        NON_NULL,
        "Whether those columns must be NOT NULL: rows where they are null are never seen after "
        "the snapshot.",
        default=True,
        importance=Importance.LOW,
    ),
    number_key(
        DELAY_MS,
        "For a query: the minimum age of a row's time, so that earlier ones can commit; no "
        "effect on tables, where late commits are not lost.",
        0,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
    number_key(
        LOOKBACK_MS,
        "The lookback in time for rows that commit late: it keeps a poll short, and a "
        "row that is later is lost.",
        3_600_000,
        importance=Importance.LOW,
    ),
    number_key(
        LOOKBACK_ROWS,
        "The lookback for a growing number: how far below the highest one.",
        100_000,
        importance=Importance.LOW,
    ),
    number_key(
        AUDIT_MS,
        "How often to count rows that were committed later than that, or changed under an old "
        "value, by a scan of the whole table; the status reports them. 0: never.",
        0,
        importance=Importance.LOW,
    ),
    choice_key(
        SNAPSHOT_MODE,
        "initial reads what is there, and then what commits after; initial_only stops after the "
        "first; no_data begins with the second; when_needed is initial, and starts again by itself "
        "if the slot is gone (mode log).",
        INITIAL,
        INITIAL_ONLY,
        NO_DATA,
        WHEN_NEEDED,
    ),
    number_key(
        TABLE_POLL_MS,
        "How often to check for new tables.",
        60_000,
        least=1_000,
        importance=Importance.LOW,
    ),
    choice_key(
        NUMERIC_MAPPING,
        "What numeric is read as: none (decimals; those of no declared width have 38 digits, 18 of "
        "them behind the point), precision_only (whole ones as integers where they fit), best_fit "
        "(others as doubles where they fit, too), best_fit_eager_double (others as doubles).",
        NO_MAPPING,
        PRECISION_ONLY,
        BEST_FIT,
        EAGER_DOUBLE,
        importance=Importance.LOW,
    ),
    text_key(
        TIMEZONE,
        "The zone of times without one (timestamp), which makes them instants; a cursor column "
        "is compared with the clock of this zone. Empty: they stay without a zone.",
        "",
        importance=Importance.LOW,
        validator=_timezone,
    ),
    text_key(
        TOPIC_PREFIX,
        "The prefix of a row's topic (`_topic`), before `schema.table`.",
        "",
        importance=Importance.LOW,
    ),
    text_key(
        SLOT,
        "The replication slot, for mode log; it is created if it does not exist. Empty: a slot "
        "named after the connector.",
        "",
        validator=_slot_name,
    ),
    flag_key(
        DROP_SLOT,
        "Whether the slot goes once the connector is STOPPED (not paused, not restarted), so that "
        "the server keeps no log for it. What is written from then on is in no log: a connector "
        f"that is resumed reads the tables again with {SNAPSHOT_MODE}={WHEN_NEEDED}, and fails "
        "with the reason otherwise.",
        default=False,
    ),
    text_key(PUBLICATION, "The publication, for mode log. Empty: the name of the slot.", ""),
    choice_key(
        AUTOCREATE,
        "Who creates the publication: filtered creates it for the tables to read, and adds "
        "tables; all_tables creates it for all tables; disabled leaves it to others.",
        FILTERED,
        ALL_TABLES,
        DISABLED,
    ),
    list_key(
        SKIPPED,
        "The operations to skip, in mode log: c (creates), u (updates), d (deletes), t "
        "(TRUNCATE); or none.",
        "none",
        importance=Importance.LOW,
        validator=_operations,
    ),
)

TASK_DEFINITIONS: Sequence[Definition] = (
    text_key(
        TASK_SHARE,
        "The tables and pages that the task reads.",
        importance=Importance.LOW,
        required=True,
    ),
    text_key(
        TASK_LOG,
        "The tables whose changes the task reads, if it is the one that reads the log.",
        "",
        importance=Importance.LOW,
    ),
)


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors of keys that do not fit together, by the key to change."""
    mode, errors = config.get(MODE, ""), dict(flaws_in_url("source", config))
    if mode in {INCREMENT, BOTH} and not config.get(INCREMENTING):
        errors[INCREMENTING] = f"{MODE}={mode} needs the column that grows"
    if mode in {STAMPED, BOTH} and not config.get(TIMESTAMP):
        errors[TIMESTAMP] = f"{MODE}={mode} needs the columns of the time"
    if config.get(SNAPSHOT_MODE) == INITIAL_ONLY and mode == LOG:
        errors[SNAPSHOT_MODE] = f"needs no log: set {MODE}={XMIN}"
    if config.get(SNAPSHOT_MODE) == WHEN_NEEDED and mode != LOG:
        errors[SNAPSHOT_MODE] = f"is for {MODE}={LOG}, whose slot may go"
    if config.get(DROP_SLOT, "").lower() == "true" and mode != LOG:
        errors[DROP_SLOT] = f"is for {MODE}={LOG}, which has a slot"
    if config.get(SNAPSHOT_MODE) == NO_DATA and mode == BULK:
        errors[SNAPSHOT_MODE] = f"with {MODE}={BULK} nothing would be read"
    if config.get(QUERY):
        errors.update(_complaints_of_query(config))
    return errors


def _complaints_of_query(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors of keys that do not fit a query, by the key to change."""
    errors, mode = dict[str, str](), config.get(MODE, "")
    if mode in {XMIN, LOG}:
        errors[MODE] = (
            f"{mode} reads tables: rows of a query have no transaction of their own. Set "
            f"{INCREMENT} with a column of xid8, {STAMPED} or {BULK}"
        )
    if config.get(SNAPSHOT_MODE, INITIAL) != INITIAL:
        errors[SNAPSHOT_MODE] = "a query has no snapshot: the first look reads all that it gives"
    if "," in config.get(TIMESTAMP, ""):
        errors[TIMESTAMP] = f"a query has one: give it coalesce(…) AS … in {QUERY}"
    for key in (INCLUDE, WHITELIST, EXCLUDE):
        if config.get(key):
            errors[key] = f"has no meaning beside {QUERY}"
    return errors
