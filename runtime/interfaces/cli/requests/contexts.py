"""The clusters that a user has named: a file of contexts, and which of them a verb is for.

A context is a URL and what opens its door: an authority, a certificate, a token or a user. The file
is `fairlead/contexts.yaml` in the user's folder for configurations, for its owner only. What a
command line says comes before the environment, and that before the current context; without any of
them a verb is for the node of a data folder.
"""

import getpass
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ..adapters.transport import basic_authorization
from ..output.printing import Failed, Misused

URL_VARIABLE: Final = "FAIRLEAD_URL"
CONTEXT_VARIABLE: Final = "FAIRLEAD_CONTEXT"
LONGEST_SECRET: Final = 65_536
"""The maximum size of a file with a token or a password, in bytes."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,99}")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class ClusterContext(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename=lambda name: name.replace("_", "-"),
):
    """A cluster with a name, and what opens its door."""

    url: str = ""
    ca: str = ""
    """The path of a file with the authorities of its certificate, in PEM."""
    cert: str = ""
    """The path of a file with the client's certificate and key, in PEM."""
    token_file: str = ""
    token: str = ""
    user: str = ""
    password_file: str = ""

    def read_authorization(self) -> str:
        """Return the header that opens its door, "" for none; raises `Failed`."""
        if self.token_file or self.token:
            return f"Bearer {read_secret(self.token_file) if self.token_file else self.token}"
        if not self.user:
            return ""
        password = (
            read_secret(self.password_file) if self.password_file else ask_password(self.user)
        )
        return basic_authorization(self.user, password)


def authorize_by_environment(environ: Mapping[str, str]) -> str:
    """Return the header of the user's own token or password, "" for none; raises `Failed`.

    It is for a cluster whose context has none of its own.
    """
    names = ("token", "token_file", "user", "password_file")
    values = {each: environ.get(f"FAIRLEAD_{each.upper()}", "").strip() for each in names}
    return ClusterContext(**values).read_authorization()


def ask_password(user: str) -> str:
    """Return a password from the terminal, "" without one."""
    return getpass.getpass(f"Password of {user}: ") if sys.stdin.isatty() else ""


class ContextFile(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The contexts of a user, and the one that is meant if nothing else is said."""

    current: str = ""
    contexts: dict[str, ClusterContext] = {}


class Address(NamedTuple):
    """The cluster that a verb is for, and what has said so."""

    url: str
    origin: str
    """What has said so, for messages."""
    context: ClusterContext = ClusterContext()
    name: str = ""
    """The name of its context."""


class Chosen(NamedTuple):
    """A way in which a cluster is chosen: what says so, and its URL or the name of its context."""

    origin: str
    url: str = ""
    context: str | None = None


def locate_contexts() -> Path:
    """Return the path of the user's file of contexts."""
    folder = os.environ.get("XDG_CONFIG_HOME") or ""
    base = Path(folder) if folder.startswith("/") else Path("~/.config").expanduser()
    return base / "fairlead" / "contexts.yaml"


def read_contexts() -> ContextFile:
    """Return the contexts of the user, none without a file; raises `Failed`."""
    path = locate_contexts()
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ContextFile()
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror or error}") from None
    contexts = _parse(path, content)
    if mode & _OTHERS and any(each.token for each in contexts.contexts.values()):
        raise Failed(f"{path} has a token, and others may read it: `chmod 600 {path}`, then again")
    return contexts


def write_contexts(contexts: ContextFile) -> None:
    """Replace the file of contexts, or leave it as it is; raises `Failed`."""
    import yaml  # noqa: PLC0415  # few verbs write

    path = locate_contexts()
    text = yaml.safe_dump(msgspec.to_builtins(contexts), sort_keys=False, allow_unicode=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except OSError:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
    except OSError as error:
        told = f"{path} cannot be written ({error.strerror or error}): the contexts stay as before"
        raise Failed(told) from None


def _parse(path: Path, content: bytes) -> ContextFile:
    import yaml  # noqa: PLC0415  # without contexts no verb needs it

    try:
        document: Any = yaml.safe_load(content)
        contexts = msgspec.convert({} if document is None else document, ContextFile)
        for name, each in contexts.contexts.items():
            check_context_name(name)
            check_context_url(each.url, f"the context {name}")
    except msgspec.ValidationError as error:
        raise Failed(f"{path} holds no contexts: {error}; mend it, or move it away") from None
    except Misused as error:
        raise Failed(f"{path} holds no contexts: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        flaw = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failed(f"{path} is no YAML: {flaw}; mend it, or move it away") from None
    return contexts


def check_context_name(name: str) -> None:
    """Raise `Misused` for a name that no context can have."""
    if not _NAME.fullmatch(name):
        raise Misused(
            f"a context cannot be called {name!r}: letters, digits and . _ @ : - will do, 100 at"
            " most, and the first is a letter or a digit"
        )


def check_context_url(url: str, where: str) -> None:
    """Raise `Misused` for a URL that leads to no cluster, or has a secret in it."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Misused(f"the URL of {where} is none: {error}") from None
    if parts.username is not None or parts.password is not None or parts.query:
        raise Misused(f"the URL of {where} has more than an address: a secret has its own file")
    is_socket = parts.scheme == "unix" and parts.path.startswith("/")
    if not is_socket and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise Misused(f"{where} has no URL such as https://connect.example:8083, but {url!r}")


def read_secret(file: str) -> str:
    """Return the text in a file that only its owner may read; raises `Failed`."""
    path = Path(file).expanduser()
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = opened.read(LONGEST_SECRET + 1)
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror or error}") from None
    if stat.S_ISREG(mode) and mode & _OTHERS:
        raise Failed(f"{path} has a secret, and others may read it: `chmod 600 {path}`, then again")
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        raise Failed(f"{path} holds no text, and no secret") from None
    if not secret or not secret.isprintable() or len(content) > LONGEST_SECRET:
        raise Failed(f"{path} is to hold one secret, in one line")
    return secret


def choose_cluster(
    url: str | None, context: str | None, *, is_local: bool, environ: Mapping[str, str]
) -> Address | None:
    """Return the cluster that a verb is for; None: the node of a data folder.

    `is_local` says that the command line has named such a folder. Raises `Failed`, `Misused`.
    """
    if url is not None and context is not None:
        raise Misused("--url and --context both name a cluster: leave out one of them")
    for chosen in _list_choices(url, context, is_local=is_local, environ=environ):
        if chosen.context is not None:
            return find_context(chosen.context, chosen.origin)
        return Address(chosen.url, chosen.origin)
    return None


def _list_choices(
    url: str | None, context: str | None, *, is_local: bool, environ: Mapping[str, str]
) -> Iterator[Chosen]:
    """Yield what chooses a cluster, the first one first."""
    if url is not None:
        yield Chosen("--url", url=url)
    if context is not None:
        yield Chosen("--context", context=context)
    if is_local:
        return
    if address := environ.get(URL_VARIABLE, ""):
        yield Chosen(URL_VARIABLE, url=address)
    if name := environ.get(CONTEXT_VARIABLE, ""):
        yield Chosen(CONTEXT_VARIABLE, context=name)
    if current := read_contexts().current:
        yield Chosen("the current context", context=current)


def find_context(name: str, origin: str) -> Address:
    """Return the cluster of a context; raises `Failed`."""
    contexts = read_contexts().contexts
    context = contexts.get(name)
    if context is None:
        there = ", ".join(contexts) or "none"
        raise Failed(
            f"there is no context {name} ({origin}); there is: {there}; `fairlead config"
            " set-context NAME --url URL` adds one"
        )
    where = f"context {name}" if origin == "--context" else f"context {name}, {origin}"
    return Address(context.url, where, context, name)
