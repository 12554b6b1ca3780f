"""Options that several commands share, each declared once as the field of a dataclass.

A command has such a dataclass as its first parameter; the decorator `with_options` replaces that
by the options of its fields.
"""

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar

from ..adapters.parameters import Option
from ..output.printing import Output

if TYPE_CHECKING:
    from ....config.load import Config, Loaded

DATA_DIR: Final = "./fairlead-data"
"""The default of the setting `data.dir`."""
DEBUG: Final = "FAIRLEAD_DEBUG"

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
        Option("--set", metavar="KEY=VALUE", help="A setting; repeatable."),
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


@dataclass(frozen=True, slots=True)
class RemoteOptions(LocalOptions):
    """A cluster, selected by its URL or by the node's configuration."""

    url: Annotated[
        str | None,
        Option("--url", metavar="URL", help="The cluster's REST interface."),
    ] = None

    def find_plain_folder(self) -> Path | None:
        """Return the data folder if nothing but --data-dir can say where it is, else None.

        To read settings takes longer than to ask a cluster.
        """
        if self.config is not None or self.overrides:
            return None
        if any(each.startswith("FAIRLEAD_") and each != DEBUG for each in os.environ):
            return None
        folder = str(self.data_dir or DATA_DIR)
        return Path(folder).expanduser().absolute() if folder.isprintable() else None


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
    """Return a decorator that replaces a command's first parameter by the options of `shared`."""
    offered = dict(inspect.signature(shared, eval_str=True).parameters)

    def decorate(verb: Callable[Concatenate[T, P], None]) -> Callable[..., None]:
        own = list(inspect.signature(verb, eval_str=True).parameters.values())[1:]

        @functools.wraps(verb)
        def run(**values: Any) -> None:  # noqa: ANN401  # the values that were parsed
            split = _split(values, offered)
            verb(shared(**split[0]), **split[1])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

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
