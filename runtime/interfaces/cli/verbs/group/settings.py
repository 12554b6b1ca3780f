"""The command `group-config`: the settings that a group has of its own."""

from collections.abc import Iterator
from typing import Annotated

from ......actors.group.state.own_settings import CLIENT_SETTINGS
from ...adapters.parameters import Argument, Option
from ...output.printing import Misused, Section, Table, show
from ...requests.client import find_client
from ...requests.names import OfGroup, find_group_id
from ...requests.options import RemoteReadOptions, with_options


@with_options(RemoteReadOptions)
def group_config(
    options: RemoteReadOptions,
    words: Annotated[
        list[str] | None,
        Argument(metavar="[KEY=VALUE...]", help="Settings to set; none: show those that are set."),
    ] = None,
    *,
    reset: Annotated[
        list[str] | None,
        Option("--reset", "-r", metavar="KEY", help="A setting to reset; repeatable."),
    ] = None,
    group: OfGroup = None,
) -> None:
    """Show the settings that a group has of its own, or set and reset some.

    All others are those of its node. Groups of Kafka's clients have settings as well, by the names
    that kafka-configs takes, such as consumer.session.timeout.ms.
    """
    changes: dict[str, str | None] = dict.fromkeys(reset or ())
    changes |= dict(map(_split, words or ()))
    client = find_client(options)
    path = ("groups", find_group_id(options, client, group), "config")
    kind = dict[str, str]
    own = client.patch(kind, *path, body=changes) if changes else client.get(kind, *path)
    show(options.output, own, [*_tabulate(own)])


def _split(word: str) -> tuple[str, str | None]:
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise Misused(f"{word!r} is no change: write KEY=VALUE, or --reset KEY")
    return key, value


def _tabulate(own: dict[str, str]) -> Iterator[Section]:
    meanings = {name: each.documentation for name, each in CLIENT_SETTINGS.items()}
    rows = [(name, value, meanings.get(name, "")) for name, value in sorted(own.items())]
    yield Table(("SETTING", "VALUE", "MEANING"), rows, empty="none: all are the node's")
