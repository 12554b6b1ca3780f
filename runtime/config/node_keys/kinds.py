"""The value domains of settings: parsing, allowed values, and units.

Each domain describes its allowed values in words, which error messages quote. A `_check_` function
parses the text of one kind: it returns the value as it is stored, and raises `ValueError` with the
reason.
"""

import re
from typing import Final
from urllib.parse import quote, urlsplit

from ....actors.settings import SettingType, whole, word
from ....events.placement import (
    LARGEST_CAPACITY,
    LONGEST_LABEL,
    MOST_TAGS,
    flaw_in_labels,
    split_list,
)
from ...pipeline.engines.connect.address import ConnectAddress
from ...pipeline.engines.settings import is_connect
from ..references.trace_target import check_trace_endpoint, parse_trace_headers
from .setting import Domain

INT32_MAX: Final = (1 << 31) - 1
_LEVEL = word("DEBUG", "INFO", "WARNING", "ERROR")
PORT_MAX: Final = 65_535
FOLDER_BYTES_MAX: Final = 255
INSTANCE_BYTES_MAX: Final = 128
HEAP_MIN_MIB: Final = 466
"""Below this Spark does not start: it needs 450 MiB without one survivor space of the heap."""
MEMORY_MIN_MIB: Final = 64
"""An idle assignor process uses half of it."""
LOOPBACK_ONLY, ANYWHERE = "loopback", "anywhere"
"""Where a listener may be without encryption."""
WORKER_MEMORY_MIN_MIB: Final = 2_048  # 1.3 GiB of these Arrow sets aside, used or not

_CLUSTER = re.compile(
    r"spark://[^\s,:/]+:\d{1,5}(?:,[^\s,:/]+:\d{1,5})*|yarn|k8s://(?:https?://)?[^\s,:/]+(?::\d{1,5})?"
)
_HEAP = re.compile(r"([1-9]\d{0,8})([kmg]?)", re.IGNORECASE)
_HEAP_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MASTER = re.compile(r"local(?:\[(\*|[1-9]\d{0,3})\])?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")


def cores_of(master: str, available: int) -> int:
    """Return the number of cores in a Spark master such as `local[2]`."""
    found = _MASTER.fullmatch(master)
    if found is None:
        return available  # a cluster: its number is not known here
    return available if found[1] == "*" else int(found[1] or 1)


def _check_group_id(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    if text in {".", ".."} or len(quote(text, safe="")) > FOLDER_BYTES_MAX:
        raise ValueError("it cannot be the name of a folder, which the group's logs need")
    return text


def _check_instance(text: str) -> str:
    if len(text.encode(errors="replace")) > INSTANCE_BYTES_MAX or not text.isprintable():
        raise ValueError(f"it is longer than {INSTANCE_BYTES_MAX} bytes or cannot be printed")
    return text.strip()


def _check_zone(text: str) -> str:
    if text and (flaw := flaw_in_labels([text.strip()])):
        raise ValueError(flaw)
    return text.strip()


def _check_tags(text: str) -> str:
    tags = split_list(text)
    if flaw := flaw_in_labels(tags):
        raise ValueError(flaw)
    if len(tags) > MOST_TAGS:
        raise ValueError(f"there are {len(tags)}")
    return ",".join(tags)


def _check_host(text: str) -> str:
    if text and not _HOST.fullmatch(text):
        raise ValueError("it is not a host name or address")
    return text


def _check_folders(value: str) -> str:
    for path in split_list(value):
        if not path.startswith("/"):
            raise ValueError(f"{path!r} is not an absolute path")
    return value


def _check_sql_names(value: str) -> str:
    for name in split_list(value):
        if not name or any(letter.isspace() for letter in name):
            raise ValueError(f"{name!r} is not a name")
    return value


def _check_jdbc(value: str) -> str:
    for url in split_list(value):
        if not re.fullmatch(r"jdbc:[a-z][\w+-]*:\S+", url):
            raise ValueError(f"{url!r} is not the beginning of a JDBC URL")
    return value


def _check_hosts(text: str) -> str:
    hosts = split_list(text)
    for host in hosts:
        try:
            parts = urlsplit("//" + host)
            is_host = _HOST.fullmatch(parts.hostname or "") and parts.port != 0
            is_bare = parts.netloc == host and "@" not in host
        except ValueError:
            is_host = is_bare = False
        if not (is_host and is_bare):
            raise ValueError(f"{host!r} is not a host")
    return ",".join(hosts)


def _check_jwks(text: str) -> str:
    text = text.strip()
    path = text.removeprefix("file://")
    if "://" in path:
        parts = urlsplit(text)
        is_here = parts.scheme == "http" and (parts.hostname or "") in _LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or is_here):
            raise ValueError("keys that come over a network come by https")
    elif path and not path.startswith("/"):
        raise ValueError("it is no absolute path")
    return path


def _check_path(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _check_master(text: str) -> str:
    if is_connect(text):
        ConnectAddress.parse(text)
    elif text and not _MASTER.fullmatch(text) and not _CLUSTER.fullmatch(text):
        raise ValueError("it is not a supported master URL")
    return text


def bytes_of(size: str) -> int:
    """Return the bytes of a size such as 1g; raises `ValueError`."""
    found = _HEAP.fullmatch(size)
    if not found:
        raise ValueError("it is not a size")
    return int(found[1]) * _HEAP_BYTES[found[2].lower()]


def _check_heap(text: str) -> str:
    if bytes_of(text) < HEAP_MIN_MIB << 20:
        raise ValueError("it is too small for Spark to start")
    return text


def _check_memory(text: str, least_mib: int = MEMORY_MIN_MIB) -> str:
    if not least_mib << 20 <= bytes_of(text) < 1 << 62:
        raise ValueError("it is too small or too large for a process")
    return text


def _check_names(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(map(_NAME.fullmatch, names)):
        raise ValueError("a name is missing or invalid")
    if len(set(names)) < len(names):
        raise ValueError("a name occurs twice")
    return text


def _check_assignor(text: str) -> str:
    if text and not _NAME.fullmatch(text):
        raise ValueError("the name is invalid")
    return text


def _check_protocols(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not {*names} <= {"connect", "classic", "consumer"}:
        raise ValueError("a protocol is unknown or missing")
    return ",".join(dict.fromkeys(names))


def _check_trace_headers(text: str) -> str:
    parse_trace_headers(text)
    return text.strip()


def _check_service(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("it is blank or cannot be printed")
    return text.strip()


def _log_level(text: str) -> str:
    return str(_LEVEL(text.upper()))


def number(low: int, high: int, unit: str = "", what: str = "a whole number") -> Domain:
    """Return the domain of whole numbers between two bounds; `what` names them in messages."""
    return Domain(whole(low, high), f"{what}, from {low} to {high}", unit, SettingType.INT)


def milliseconds(low: int, high: int = INT32_MAX) -> Domain:
    """Return the domain of times between two, in milliseconds."""
    return number(low, high, "ms", "a whole number of milliseconds")


MILLISECONDS: Final = milliseconds(1)
MILLISECONDS_OR_NONE: Final = milliseconds(0)
ANSWER_MILLISECONDS: Final = milliseconds(1_000)
"""With a shorter timeout, slow processes of a busy machine would be killed."""
BATCHES: Final = number(0, INT32_MAX, "batches")
WORKERS: Final = number(0, 1000, "processes")
PORT: Final = number(0, PORT_MAX, "port", "a port")
GROUP_ID: Final = Domain(
    _check_group_id, f"a name that makes a folder's name of at most {FOLDER_BYTES_MAX} bytes"
)
HOST: Final = Domain(_check_host, "a host's name or address, or nothing")
JWKS: Final = Domain(
    _check_jwks, "an absolute path, also as file:///PATH, an https URL, or nothing"
)
HOSTS: Final = Domain(
    _check_hosts, "hosts as HOST or HOST:PORT, with commas between them, or nothing"
)
FOLDER: Final = Domain(_check_path, "a folder")
FOLDER_OR_NONE: Final = Domain(str, "a folder, or nothing")
FILE: Final = Domain(str.strip, "a file, or nothing")
TEXT: Final = Domain(str.strip, "a text, or nothing")
SECRET: Final = Domain(str.strip, "a text, or nothing", type=SettingType.PASSWORD)
FOLDER_MODE: Final = Domain(word("plan", "apply"), "plan or apply")
TRUE_OR_FALSE: Final = Domain(word("true", "false"), "true or false")
FOLDERS: Final = Domain(
    _check_folders, "absolute paths of folders, with commas between them, or nothing"
)
SQL_NAMES: Final = Domain(
    _check_sql_names,
    "names of functions, formats, schemas or tables, with commas between them, or nothing",
)
JDBC_URLS: Final = Domain(
    _check_jdbc, "beginnings of URLs such as jdbc:mysql://host:3306/, with commas between them"
)
SPARK_MASTER: Final = Domain(
    _check_master,
    "local, local[N] or local[*], spark://HOST:PORT, yarn, k8s://URL, sc://HOST:PORT, or nothing:"
    " this machine's cores shared by the workers",
)
_SIZE: Final = "a size as Java spells it, such as 1g; at least"
HEAP: Final = Domain(_check_heap, f"{_SIZE} {HEAP_MIN_MIB}m", "bytes")
MEMORY: Final = Domain(_check_memory, f"{_SIZE} {MEMORY_MIN_MIB}m", "bytes")
WORKER_MEMORY: Final = Domain(
    lambda text: text and _check_memory(text, WORKER_MEMORY_MIN_MIB),
    f"{_SIZE} {WORKER_MEMORY_MIN_MIB}m, or nothing",
    "bytes",
)
GROUP_PROTOCOLS: Final = Domain(
    _check_protocols, "some of connect, classic and consumer, with commas between them"
)
ASSIGNOR_NAMES: Final = Domain(_check_names, "names of assignors, with commas between them")
SERVER_ASSIGNOR: Final = Domain(
    _check_assignor,
    "uniform, range or an installed server assignor, or nothing: the workers compute",
)
JVM_KIND: Final = Domain(word("auto", "embedded", "shared"), "auto, embedded or shared")
LANE: Final = Domain(word("auto", "spark"), "auto or spark")
ENGINE_KIND: Final = Domain(word("spark", "noop"), "spark or noop")
LOG_LEVEL: Final = Domain(_log_level, "DEBUG, INFO, WARNING or ERROR")
PLAINTEXT: Final = Domain(word(LOOPBACK_ONLY, ANYWHERE), f"{LOOPBACK_ONLY} or {ANYWHERE}")
LOG_BYTES: Final = number(1 << 16, 1 << 40, "bytes")
LOG_FILES: Final = number(1, 1_000, "files")
LOG_FORMAT: Final = Domain(word("text", "json"), "text or json")
LOG_TO: Final = Domain(word("file", "stdout"), "file or stdout")
TRACE_ENDPOINT: Final = Domain(
    check_trace_endpoint, "a URL such as http://127.0.0.1:4318, without a password, or nothing"
)
TRACE_HEADERS: Final = Domain(
    _check_trace_headers,
    "NAME=VALUE, with commas between them, or nothing",
    type=SettingType.PASSWORD,
)
SERVICE_NAME: Final = Domain(_check_service, "a name")
ZONE: Final = Domain(
    _check_zone, f"a name of at most {LONGEST_LABEL} characters, without commas, or nothing"
)
TAGS: Final = Domain(
    _check_tags,
    f"up to {MOST_TAGS} names of at most {LONGEST_LABEL} characters, with commas between them,"
    " or nothing",
)
CAPACITY: Final = number(1, LARGEST_CAPACITY)
INSTANCE_ID: Final = Domain(_check_instance, "a name, or nothing")
