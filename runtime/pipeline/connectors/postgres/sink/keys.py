"""The keys of tables as a sink: each says what it means."""

from collections.abc import Mapping, Sequence

from ......actors.settings import SettingType, not_blank, one_of
from ....spi.config import Definition, Importance, Width, is_deferred
from ..connecting import parameters

URL = "sink.connection.url"
USER = "sink.connection.user"
PASSWORD = "sink.connection.password"  # noqa: S105  # a key's name
TABLE_FORMAT = "sink.table.name.format"
SCHEMA = "sink.schema"
INSERT_MODE = "sink.insert.mode"
PK_MODE = "sink.pk.mode"
PK_FIELDS = "sink.pk.fields"
DELETE_ENABLED = "sink.delete.enabled"
AUTO_CREATE = "sink.auto.create"
AUTO_EVOLVE = "sink.auto.evolve"
WHITELIST = "sink.fields.whitelist"

INSERT, UPSERT, UPDATE = "insert", "upsert", "update"
NONE, RECORD_KEY, RECORD_VALUE = "none", "record_key", "record_value"

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
    Definition(
        USER,
        SettingType.STRING,
        "Who writes. The role ends sessions that a former owner of a task has left behind, so it "
        "should be this connector's own.",
        importance=Importance.HIGH,
        default="",
    ),
    Definition(
        PASSWORD,
        SettingType.PASSWORD,
        "The password; it is sealed before it is written down.",
        importance=Importance.HIGH,
    ),
    Definition(
        TABLE_FORMAT,
        SettingType.STRING,
        "The table that rows go to: `${topic}` in it is the row's topic, `${table}` the last part "
        "of that. It may begin with a schema: `lake.${table}`.",
        importance=Importance.HIGH,
        default="${topic}",
        validator=not_blank,
    ),
    Definition(
        SCHEMA,
        SettingType.STRING,
        "The schema of tables whose name has none, of what is staged and of the marker "
        "`fairlead_published`. It must be there.",
        importance=Importance.MEDIUM,
        default="public",
        validator=not_blank,
    ),
    Definition(
        INSERT_MODE,
        SettingType.STRING,
        "insert adds rows; upsert replaces the row of the same key; update changes rows that are "
        "there, and adds none.",
        importance=Importance.HIGH,
        default=INSERT,
        validator=one_of(INSERT, UPSERT, UPDATE),
        recommended=(INSERT, UPSERT, UPDATE),
        dependents=(PK_MODE, PK_FIELDS),
    ),
    Definition(
        PK_MODE,
        SettingType.STRING,
        "Where a row's key is: none, record_key (the column `_key` of rows that have one, else "
        "among the row's columns) or record_value (among the row's columns).",
        importance=Importance.HIGH,
        default=NONE,
        validator=one_of(NONE, RECORD_KEY, RECORD_VALUE),
        recommended=(NONE, RECORD_KEY, RECORD_VALUE),
        dependents=(PK_FIELDS,),
    ),
    Definition(
        PK_FIELDS,
        SettingType.LIST,
        "The columns of the key, of which the table must have a unique index. Empty: the columns "
        "of the table's primary key.",
        importance=Importance.MEDIUM,
        default=(),
    ),
    Definition(
        DELETE_ENABLED,
        SettingType.BOOLEAN,
        "Whether a row with `__op` of d, or with `__deleted`, deletes the row of its key; else it "
        "is passed over, or in insert mode added as others are.",
        importance=Importance.MEDIUM,
        default=False,
    ),
    Definition(
        AUTO_CREATE,
        SettingType.BOOLEAN,
        "Whether a table that is not there is made, with the columns of the rows.",
        importance=Importance.MEDIUM,
        default=False,
    ),
    Definition(
        AUTO_EVOLVE,
        SettingType.BOOLEAN,
        "Whether columns that a table lacks are added to it, and those that are too narrow widened "
        "(int to bigint, real to double precision, numeric to more digits).",
        importance=Importance.MEDIUM,
        default=False,
    ),
    Definition(
        WHITELIST,
        SettingType.LIST,
        "The columns to write beside the key. Empty: all but those about the record itself "
        "(`_topic`, `_key`, …) and those that begin with two underscores.",
        importance=Importance.MEDIUM,
        default=(),
    ),
)


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with the keys together, under the key to change."""
    found = complaints_of_url(config, URL)
    mode, pk = config.get(INSERT_MODE, INSERT), config.get(PK_MODE, NONE)
    if mode in {UPSERT, UPDATE} and pk == NONE:
        found[PK_MODE] = f"{INSERT_MODE}={mode} needs a key: record_key or record_value"
    if config.get(DELETE_ENABLED) == "true" and mode != UPSERT:
        found[DELETE_ENABLED] = f"needs {INSERT_MODE}={UPSERT}"
    if config.get(PK_FIELDS) and pk == NONE:
        found[PK_FIELDS] = f"has no meaning with {PK_MODE}={NONE}"
    return found


def complaints_of_url(config: Mapping[str, str], key: str) -> dict[str, str]:
    """Return what is wrong with the URL of an end, which may hold no password."""
    url = config.get(key, "")
    if not url or is_deferred(url):
        return {}
    try:
        has_password = "password" in parameters(url)
    except ValueError as error:
        return {key: str(error)}
    sealed = key.replace(".url", ".password")
    return {key: f"holds a password: give it as {sealed}, which is sealed"} if has_password else {}
