"""Options that several commands share, each declared once as the field of a dataclass.

A command has such a dataclass as its first parameter; the decorator `with_options` replaces that
by the options of its fields.
"""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar

from ..adapters.parameters import Option
from ..adapters.tls import NO_FILES, TlsFiles
from ..output.printing import Output

if TYPE_CHECKING:
    from ....config.load import Config, Loaded
    from .contexts import Address

DATA_DIR: Final = "./fairlead-data"
"""The default of the setting `data.dir`."""
CA_VARIABLE: Final = "FAIRLEAD_CA"
CERT_VARIABLE: Final = "FAIRLEAD_CERT"
REMOTE: Final = frozenset(
    {
        "FAIRLEAD_DEBUG",
        "FAIRLEAD_URL",
        "FAIRLEAD_CONTEXT",
        "FAIRLEAD_TOKEN",
        "FAIRLEAD_TOKEN_FILE",
        "FAIRLEAD_USER",
        "FAIRLEAD_PASSWORD_FILE",
        CA_VARIABLE,
        CERT_VARIABLE,
    }
)
"""The variables of the environment that are no settings of a node."""
DATA_DIR_VARIABLE: Final = "FAIRLEAD_DATA_DIR"
LOCAL_KEYS: Final = frozenset({"data.dir", "listeners"})
LOCAL_VARIABLES: Final = frozenset({DATA_DIR_VARIABLE, "FAIRLEAD_LISTENERS"})
"""The settings, and their variables, that say which node of this machine is meant."""


def complete_contexts(_: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Return the names of contexts that begin so."""
    from .contexts import read_contexts  # noqa: PLC0415  # only after TAB

    with suppress(Exception):  # a shell would show what is wrong in the middle of a line
        yield from (name for name in read_contexts().contexts if name.startswith(incomplete))


def _complete_settings(_: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Return the settings that begin so, as `KEY=`."""
    from ....config.keys import SETTINGS  # noqa: PLC0415  # only after TAB

    return (f"{key}=" for key in SETTINGS if key.startswith(incomplete))


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """A node on this machine, selected by its configuration."""

    config: Annotated[
        Path | None,
        Option("--config", metavar="FILE", help="A .toml or .properties file of settings."),
    ] = None
    overrides: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting; repeatable.",
            complete=_complete_settings,
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        Option("--data-dir", metavar="DIR", help="Short for --set data.dir=DIR."),
    ] = None

    def load(self) -> "Loaded":
        """Return the configuration with its sources; raises `ConfigError`."""
        from ....config.load import load_with_sources  # noqa: PLC0415  # --help needs no settings

        overrides = list(self.overrides or ())
        if self.data_dir is not None:
            overrides.append(f"data.dir={self.data_dir}")
        return load_with_sources(self.config, os.environ, overrides)

    def load_config(self) -> "Config":
        """Return the configuration; raises `ConfigError`."""
        return self.load().config

    def find_plain_folder(self) -> Path | None:
        """Return the data folder if no setting but `data.dir` has another value, else None.

        To read settings takes longer than to ask a cluster.
        """
        variables = {each for each in os.environ if each.startswith("FAIRLEAD_")} - REMOTE
        if self.config is not None or self.overrides or variables - {DATA_DIR_VARIABLE}:
            return None
        folder = str(self.data_dir or os.environ.get(DATA_DIR_VARIABLE, DATA_DIR))
        is_plain = folder and folder.isprintable() and folder == folder.strip()
        return Path(folder).expanduser().absolute() if is_plain else None

    @property
    def names_folder(self) -> bool:
        """Whether a plain folder is another one than that of the default."""
        return self.data_dir is not None or DATA_DIR_VARIABLE in os.environ


@dataclass(frozen=True, slots=True)
class RemoteOptions(LocalOptions):
    """A cluster, selected by its URL or by the node's configuration."""

    url: Annotated[
        str | None,
        Option("--url", metavar="URL", help="The cluster's REST interface."),
    ] = None
    context: Annotated[
        str | None,
        Option(
            "--context",
            metavar="NAME",
            help="A cluster that `config set-context` has named.",
            complete=complete_contexts,
        ),
    ] = None

    ca: Annotated[
        Path | None,
        Option("--ca", metavar="FILE", help="The authorities of an https cluster, in PEM."),
    ] = None
    cert: Annotated[
        Path | None,
        Option("--cert", metavar="FILE", help="A client's certificate and key, in PEM."),
    ] = None

    def tls_files(self, of_context: TlsFiles = NO_FILES) -> TlsFiles:
        """Return the files for https: of the options, the environment, or a context."""
        return TlsFiles(
            str(self.ca or os.environ.get(CA_VARIABLE) or of_context.ca),
            str(self.cert or os.environ.get(CERT_VARIABLE) or of_context.cert),
        )

    def find_address(self) -> "Address | None":
        """Return the address of the cluster that is named; None: that of a data folder.

        Raises `Failed`, `Misused`.
        """
        from .contexts import choose_cluster  # noqa: PLC0415  # what changes nothing reads no file

        overrides = (each.partition("=")[0].strip() for each in self.overrides or ())
        is_local = bool(self.config or self.data_dir or LOCAL_KEYS.intersection(overrides))
        is_local = is_local or not LOCAL_VARIABLES.isdisjoint(os.environ)
        return choose_cluster(self.url, self.context, is_local=is_local, environ=os.environ)


OptionsT = TypeVar("OptionsT", bound=LocalOptions)


def select_group(options: OptionsT, group: str | None) -> OptionsT:
    """Return the options with another group, unless that is None."""
    if group is None:
        return options
    return replace(options, overrides=[*(options.overrides or ()), f"group.id={group}"])


_OUTPUT = Option("--output", "-o", help="The output format.")


@dataclass(frozen=True, slots=True)
class LocalReadOptions(LocalOptions):
    """A node on this machine, and the output format."""

    output: Annotated[Output, _OUTPUT] = Output.TABLE


@dataclass(frozen=True, slots=True)
class RemoteReadOptions(RemoteOptions):
    """A cluster, and the output format."""

    output: Annotated[Output, _OUTPUT] = Output.TABLE


def with_options(
    shared: Callable[..., T],
) -> Callable[[Callable[Concatenate[T, P], None]], Callable[..., None]]:
    """Return a decorator that replaces a command's first parameter by the options of `shared`.

    It may stand twice: the decorator above then replaces what was the second parameter.
    """
    offered = dict(inspect.signature(shared, eval_str=True).parameters)

    def decorate(verb: Callable[Concatenate[T, P], None]) -> Callable[..., None]:
        own = list(inspect.signature(verb, eval_str=True).parameters.values())[1:]

        @functools.wraps(verb)
        def run(*others: Any, **values: Any) -> None:  # noqa: ANN401  # the values that were parsed
            split = _split(values, offered)
            verb(shared(**split[0]), *others, **split[1])  # pyright: ignore[reportCallIssue]

        parameters = [*own, *offered.values()]
        keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
        run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__doc__ = inspect.getdoc(verb)
        return run

    return decorate


def _split(
    values: Mapping[str, Any], offered: Mapping[str, object]
) -> tuple[dict[str, Any], dict[str, Any]]:
    shared = {name: value for name, value in values.items() if name in offered}
    return shared, {name: value for name, value in values.items() if name not in offered}
