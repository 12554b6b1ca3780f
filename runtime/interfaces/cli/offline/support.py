"""The command `support-bundle`: what somebody who helps has to know, in one file.

It has answers of the cluster, settings, the ends of log files, and what `doctor` says. Keys, user
files and the group logs are never read. Secrets are hidden where the answers come from; whatever
looks like one in any text is hidden once more before it is written. What could not be had is listed
in `missing.txt`: a bundle of a node that is down has the rest.
"""

import io
import os
import platform
import re
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import to_builtins

from ....config.references.secret_patterns import redact
from ...replies.node import LogPage
from ..adapters.parameters import Option
from ..output.printing import Failed, format_json, say
from ..requests.client import Client, find_client
from ..requests.options import RemoteOptions, with_options

ANSWERS: Final[Mapping[str, tuple[Sequence[str], Mapping[str, str | tuple[str, ...]]]]] = {
    "root.json": ((), {}),
    "status.json": (("status",), {}),
    "health.json": (("health",), {}),
    "workers.json": (("workers",), {}),
    "assignors.json": (("assignors",), {}),
    "groups.json": (("groups",), {}),
    "connectors.json": (("connectors",), {"expand": ("status", "info", "progress")}),
    "plugins.json": (("connector-plugins",), {"connectorsOnly": "false"}),
    "loggers.json": (("admin", "loggers"), {}),
}
"""What the cluster is asked: the name of the file, then path and query."""
OF_GROUPS: Final = ("", "history", "explain/latest", "events")
"""What is asked of each group of workers."""
LOG_BYTES: Final = 1 << 20
"""How much of the end of each log file is kept, in bytes."""
LOG_ENTRIES: Final = 10_000
"""How many of the last entries are asked of a node on another machine."""


@dataclass(frozen=True, slots=True)
class BundleOptions(RemoteOptions):
    """A cluster and a node on this machine, and the file that is written."""

    file: Annotated[
        Path | None,
        Option("--filename", "-f", metavar="FILE", help="A new .tar.gz; default: by the time."),
    ] = None


@with_options(BundleOptions)
def support_bundle(options: BundleOptions) -> None:
    """Write what somebody who helps has to know into one file, without secrets.

    State, configs, history, events and metrics of the cluster, also of a remote one; of a node on
    this machine its settings, the ends of its log files, and what `doctor` says.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = options.file or Path(f"fairlead-support-{stamp}.tar.gz")
    missing: list[str] = []
    files = dict(_gather(options, missing))
    if missing:
        files["missing.txt"] = "".join(f"{line}\n" for line in missing)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            _write(target, path.name.removesuffix(".tar.gz"), files)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from None
    for line in missing:
        say(f"missing: {line}")
    say(f"{path} has {len(files)} files; look at it before you send it")


def _gather(options: BundleOptions, missing: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the files of a bundle; what cannot be had is added to `missing`."""
    yield "client.json", format_json(_describe_client(), 2)
    for name, read in (
        ("settings.json", lambda: _as_json(_settings(options))),
        ("doctor.json", lambda: _as_json(_findings(options))),
    ):
        yield from _try(name, read, missing)
    if options.find_address() is None:
        yield from _read_logs(options, missing)
    try:
        client = find_client(options)
        client.get(object)
    except Exception as error:  # noqa: BLE001  # a bundle is for what is broken
        missing.append(f"all answers of the cluster: {_first_line(error)}")
        return
    yield from _ask(client, missing)
    if options.find_address() is not None:
        yield from _try("logs/node.log", partial(_fetch_logs, client), missing)


def _ask(client: Client, missing: list[str]) -> Iterator[tuple[str, str]]:
    for name, (path, query) in ANSWERS.items():
        yield from _try(name, partial(_fetch, client, path, query), missing)
    yield from _try("metrics.txt", lambda: client.get_text("metrics"), missing)
    groups: list[dict[str, Any]] = []
    try:
        groups = client.get(list[dict[str, Any]], "groups")
    except Failed:
        return  # that is said already
    for group_id in (str(each["group_id"]) for each in groups if each.get("shard") is None):
        for part in OF_GROUPS:
            path = ("groups", group_id, *part.split("/")) if part else ("groups", group_id)
            file = f"groups/{re.sub(r'[^A-Za-z0-9._-]', '_', group_id)}/"
            file += f"{part.replace('/', '-') or 'group'}.json"
            yield from _try(file, partial(_fetch, client, path, {}), missing)


def _fetch(client: Client, path: Sequence[str], query: Mapping[str, str | tuple[str, ...]]) -> str:
    return _as_json(client.get(object, *path, **query))


def _fetch_logs(client: Client) -> str:
    """Return the last lines of the log files of a node elsewhere, each with its file."""
    entries = client.get(LogPage, "logs", tail=str(LOG_ENTRIES)).entries
    return "".join(f"[{each.file}] {each.text}\n" for each in entries)


def _try(name: str, read: Callable[[], str], missing: list[str]) -> Iterator[tuple[str, str]]:
    try:
        yield name, read()
    except Exception as error:  # noqa: BLE001  # a bundle is for what is broken
        missing.append(f"{name}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _as_json(data: object) -> str:
    return format_json(to_builtins(data), 2)


def _describe_client() -> dict[str, object]:
    """Return this machine's programs: no name of it, and no environment."""
    packages = sorted(f"{each.name} {each.version}" for each in distributions())
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": sys.version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": os.cpu_count(),
        "packages": packages,
    }


def _settings(options: BundleOptions) -> object:
    from ....node.shown_settings import list_settings  # noqa: PLC0415

    loaded = options.load()
    return list_settings(loaded.config, loaded.sources)


def _findings(options: BundleOptions) -> object:
    from ...doctor.examination import examine  # noqa: PLC0415

    return [*examine(options.load_config(), os.environ)]


def _read_logs(options: BundleOptions, missing: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the ends of the log files of a node on this machine."""
    try:
        folder = options.load_config().data_path / "logs"
        files = sorted(folder.glob("*.log*"))
    except Exception as error:  # noqa: BLE001  # a wrong setting is a reason for a bundle
        missing.append(f"logs: {_first_line(error)}")
        return
    for file in files:
        yield from _try(f"logs/{file.name}", partial(_read_end, file), missing)


def _read_end(file: Path) -> str:
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - LOG_BYTES))
        content = opened.read(LOG_BYTES)
    if size > LOG_BYTES:
        content = content.partition(b"\n")[2]
    return content.decode(errors="replace")


def _write(target: Any, folder: str, files: dict[str, str]) -> None:  # noqa: ANN401  # a binary file
    """Write the files into an archive, without what looks like a secret."""
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in sorted(files.items()):
            content = redact(text).encode(errors="backslashreplace")
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o600, time.time()
            archive.addfile(entry, io.BytesIO(content))
