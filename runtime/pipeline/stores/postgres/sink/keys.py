"""The config keys of the PostgreSQL sink."""

from collections.abc import Mapping, Sequence

from ......actors.settings import not_blank
from ....spi.config import Definition, Importance
from ....spi.keys.kinds import choice_key, flag_key, list_key, text_key
from ..connecting import connection_keys, flaws_in_url

URL = "sink.connection.url"
TABLE_FORMAT = "sink.table.name.format"
SCHEMA = "sink.schema"
INSERT_MODE = "sink.insert.mode"
PK_MODE = "sink.pk.mode"
PK_FIELDS = "sink.pk.fields"
ORDER = "sink.pk.order.column"
DRY_RUN = "sink.dry.run"
STAGE_WITH = "sink.stage.with"
DELETE_ENABLED = "sink.delete.enabled"
TRUNCATE_ENABLED = "sink.truncate.enabled"
AUTO_CREATE = "sink.auto.create"
AUTO_EVOLVE = "sink.auto.evolve"
WHITELIST = "sink.fields.whitelist"

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, RECORD_KEY, RECORD_VALUE = "none", "record_key", "record_value"
TABLE, PREPARED = "table", "prepared"

DEFINITIONS: Sequence[Definition] = (
    *connection_keys(
        "sink",
        "Who writes. The role ends sessions that a former owner of a task has left behind, so it "
        "should be this connector's own.",
    ),
    text_key(
        TABLE_FORMAT,
        "The table that rows go to: `${topic}` in it is the row's topic, `${table}` the last part "
        "of that. It may begin with a schema: `lake.${table}`.",
        "${topic}",
        importance=Importance.HIGH,
        validator=not_blank,
    ),
    text_key(
        SCHEMA,
        "The schema of tables whose name has none, of what is staged and of the marker "
        "`fairlead_published`. It must be there.",
        "public",
        validator=not_blank,
    ),
    choice_key(
        INSERT_MODE,
        "insert adds rows; upsert replaces the row of the same key; update changes rows that are "
        "there, and adds none.",
        INSERT,
        UPSERT,
        UPDATE,
        importance=Importance.HIGH,
        dependents=(PK_MODE, PK_FIELDS, ORDER),
    ),
    choice_key(
        PK_MODE,
        "Where a row's key is: none, record_key (the column `_key` of rows that have one, else "
        "among the row's columns) or record_value (among the row's columns).",
        NONE,
        RECORD_KEY,
        RECORD_VALUE,
        importance=Importance.HIGH,
        dependents=(PK_FIELDS,),
    ),
    list_key(
        PK_FIELDS,
        "The columns of the key, of which the table must have a unique index. Empty: the columns "
        "of the table's primary key.",
    ),
    text_key(
        ORDER,
        "A column that grows with each version of a row (a time, a number, `__lsn`): a row does "
        "not replace, or delete, one with a higher value. A deleted row leaves no value behind. "
        "Empty: what comes last wins.",
        "",
    ),
    flag_key(
        DELETE_ENABLED,
        "Whether a row with `__op` of d, or with `__deleted`, deletes the row of its key; else it "
        "is passed over, or in insert mode added as others are. A tombstone (`_key`, and nulls "
        "elsewhere) deletes with record_key as well; else it is a bad row, as in Connect.",
        default=False,
    ),
    flag_key(
        TRUNCATE_ENABLED,
        "Whether a row with `__op` of t empties the table before the rows that follow it; else it "
        "is passed over.",
        default=False,
    ),
    flag_key(
        AUTO_CREATE,
        "Whether a table that is not there is made, with the columns of the rows.",
        default=False,
    ),
    flag_key(
        AUTO_EVOLVE,
        "Whether columns that a table lacks are added to it, and those that are too narrow widened "
        "(int to bigint, real to double precision, numeric to more digits).",
        default=False,
    ),
    flag_key(
        DRY_RUN,
        "Whether a batch is put in and taken out again before it counts, where the table has "
        "foreign keys, triggers, partitions, computed columns or constraints that show only then, "
        "or is a view: rows that they refuse are bad rows. Else a batch with such a row waits "
        "until somebody mends it.",
        default=True,
        importance=Importance.LOW,
    ),
    choice_key(
        STAGE_WITH,
        "How a batch waits until it counts. table: in a table of its own, from which it is copied "
        "then. prepared: in its tables already, as a prepared transaction, so that rows are "
        "written once; until it is published it holds its locks. The server needs "
        "max_prepared_transactions of at least tasks.max.",
        TABLE,
        PREPARED,
        importance=Importance.LOW,
    ),
    list_key(
        WHITELIST,
        "The columns to write beside the key. Empty: all but those about the record itself "
        "(`_topic`, `_key`, …) and those that begin with two underscores.",
    ),
)


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors of keys that do not fit together, by the key to change."""
    errors = dict(flaws_in_url("sink", config))
    mode, pk = config.get(INSERT_MODE, INSERT), config.get(PK_MODE, NONE)
    if mode in {UPSERT, UPDATE} and pk == NONE:
        errors[PK_MODE] = f"{INSERT_MODE}={mode} needs a key: record_key or record_value"
    if config.get(DELETE_ENABLED) == "true" and mode != UPSERT:
        errors[DELETE_ENABLED] = f"needs {INSERT_MODE}={UPSERT}"
    if config.get(ORDER) and mode == INSERT:
        errors[ORDER] = f"needs {INSERT_MODE}={UPSERT} or {UPDATE}"
    if config.get(PK_FIELDS) and pk == NONE:
        errors[PK_FIELDS] = f"has no meaning with {PK_MODE}={NONE}"
    return errors
