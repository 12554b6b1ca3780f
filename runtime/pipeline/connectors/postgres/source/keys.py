"""The keys of tables as a source: each says what it means."""

import re
from collections.abc import Mapping, Sequence

from ......actors.settings import SettingType, Value, at_least, not_blank, one_of
from ....spi.config import Definition, Importance, Width

URL = "source.connection.url"
USER = "source.connection.user"
PASSWORD = "source.connection.password"  # noqa: S105  # a key's name
INCLUDE = "source.table.include.list"
WHITELIST = "source.table.whitelist"
EXCLUDE = "source.table.exclude.list"
MODE = "source.mode"
INCREMENTING = "source.incrementing.column.name"
TIMESTAMP = "source.timestamp.column.name"
NON_NULL = "source.validate.non.null"
DELAY_MS = "source.timestamp.delay.interval.ms"
LOOKBACK_MS = "source.lookback.ms"
LOOKBACK_ROWS = "source.lookback.rows"
SNAPSHOT_MODE = "source.snapshot.mode"
TABLE_POLL_MS = "source.table.poll.interval.ms"
NUMERIC_MAPPING = "source.numeric.mapping"
TOPIC_PREFIX = "source.topic.prefix"
TASK_SHARE = "task.source.share"

BULK, INCREMENT, STAMPED = "bulk", "incrementing", "timestamp"
BOTH, XMIN = "timestamp+incrementing", "xmin"
MODES = (BULK, INCREMENT, STAMPED, BOTH, XMIN)
INITIAL, INITIAL_ONLY, NO_DATA = "initial", "initial_only", "no_data"
NO_MAPPING, PRECISION_ONLY = "none", "precision_only"
BEST_FIT, EAGER_DOUBLE = "best_fit", "best_fit_eager_double"
MAPPINGS = (NO_MAPPING, PRECISION_ONLY, BEST_FIT, EAGER_DOUBLE)


def _patterns(value: Value) -> str | None:
    for each in value if isinstance(value, tuple) else ():
        try:
            re.compile(each)
        except re.error as error:
            return f"{each} is no regular expression: {error}"
    return None


DEFINITIONS: Sequence[Definition] = (
    Definition(
        URL,
        SettingType.STRING,
        "The database: postgresql://host:5432/database, or the same as jdbc:postgresql://…",
        importance=Importance.HIGH,
        required=True,
        validator=not_blank,
        width=Width.LONG,
    ),
    Definition(USER, SettingType.STRING, "Who reads.", importance=Importance.HIGH, default=""),
    Definition(
        PASSWORD,
        SettingType.PASSWORD,
        "The password; it is sealed before it is written down.",
        importance=Importance.HIGH,
    ),
    Definition(
        MODE,
        SettingType.STRING,
        "What is read after the snapshot of a table: nothing (bulk), rows that are new by a column "
        "(incrementing), new or changed by times (timestamp, timestamp+incrementing), or new or "
        "changed by the transaction that wrote them (xmin: no column is needed, and each look "
        "reads the whole table).",
        importance=Importance.HIGH,
        required=True,
        validator=one_of(*MODES),
        recommended=MODES,
        dependents=(INCREMENTING, TIMESTAMP),
    ),
    Definition(
        INCLUDE,
        SettingType.LIST,
        "The tables to read: regular expressions that match the whole of `schema.table`. Empty: "
        "all that are not the system's.",
        importance=Importance.HIGH,
        default=(),
        validator=_patterns,
        width=Width.LONG,
    ),
    Definition(
        WHITELIST,
        SettingType.LIST,
        f"The tables to read, as {INCLUDE} or by their bare names.",
        importance=Importance.LOW,
        default=(),
        validator=_patterns,
    ),
    Definition(
        EXCLUDE,
        SettingType.LIST,
        "Tables not to read: regular expressions likewise.",
        importance=Importance.MEDIUM,
        default=(),
        validator=_patterns,
        width=Width.LONG,
    ),
    Definition(
        INCREMENTING,
        SettingType.STRING,
        "The column that grows with each new row: a whole number; or an xid8 with DEFAULT "
        "pg_current_xact_id(), which needs no looking back.",
        importance=Importance.MEDIUM,
        default="",
    ),
    Definition(
        TIMESTAMP,
        SettingType.LIST,
        "The columns that tell when a row was written: the first that is not null counts.",
        importance=Importance.MEDIUM,
        default=(),
    ),
    Definition(
        NON_NULL,
        SettingType.BOOLEAN,
        "Whether those columns must be NOT NULL: rows where they are null are never seen after "
        "the snapshot.",
        importance=Importance.LOW,
        default=True,
    ),
    Definition(
        DELAY_MS,
        SettingType.INT,
        "Taken as Connect has it, and without effect: what commits late is not lost.",
        importance=Importance.LOW,
        default=0,
        validator=at_least(0),
    ),
    Definition(
        LOOKBACK_MS,
        SettingType.LONG,
        "How far behind the latest time rows may be committed late: it keeps the look short, and a "
        "row that is later than that is lost.",
        importance=Importance.LOW,
        default=3_600_000,
        validator=at_least(0),
    ),
    Definition(
        LOOKBACK_ROWS,
        SettingType.LONG,
        "The same for a number that grows: how far behind the highest one.",
        importance=Importance.LOW,
        default=100_000,
        validator=at_least(0),
    ),
    Definition(
        SNAPSHOT_MODE,
        SettingType.STRING,
        "initial reads what is there, and then what commits after; initial_only stops after the "
        "first; no_data begins with the second.",
        importance=Importance.MEDIUM,
        default=INITIAL,
        validator=one_of(INITIAL, INITIAL_ONLY, NO_DATA),
        recommended=(INITIAL, INITIAL_ONLY, NO_DATA),
    ),
    Definition(
        TABLE_POLL_MS,
        SettingType.LONG,
        "How often new tables are looked for.",
        importance=Importance.LOW,
        default=60_000,
        validator=at_least(1_000),
    ),
    Definition(
        NUMERIC_MAPPING,
        SettingType.STRING,
        "What numeric is read as: none (decimals; those of no declared width have 38 digits, 18 of "
        "them behind the point), precision_only (whole ones as integers where they fit), best_fit "
        "(others as doubles where they fit, too), best_fit_eager_double (others as doubles).",
        importance=Importance.LOW,
        default=NO_MAPPING,
        validator=one_of(*MAPPINGS),
        recommended=MAPPINGS,
    ),
    Definition(
        TOPIC_PREFIX,
        SettingType.STRING,
        "What the topic of a row (`_topic`) begins with, before `schema.table`.",
        importance=Importance.LOW,
        default="",
    ),
)

TASK_DEFINITIONS: Sequence[Definition] = (
    Definition(
        TASK_SHARE,
        SettingType.STRING,
        "The tables and pages that the task reads.",
        importance=Importance.LOW,
        required=True,
    ),
)


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with the keys together, under the key to change."""
    mode, found = config.get(MODE, ""), dict[str, str]()
    if mode in {INCREMENT, BOTH} and not config.get(INCREMENTING):
        found[INCREMENTING] = f"{MODE}={mode} needs the column that grows"
    if mode in {STAMPED, BOTH} and not config.get(TIMESTAMP):
        found[TIMESTAMP] = f"{MODE}={mode} needs the columns of the time"
    if config.get(SNAPSHOT_MODE) == NO_DATA and mode == BULK:
        found[SNAPSHOT_MODE] = f"with {MODE}={BULK} nothing would be read"
    return found
