"""The verb `owner move`: the node that owns the group gives it up to another one."""

from typing import Annotated

from ....replies.node import OwnerMove
from ...adapters.parameters import Option
from ...output.printing import say
from ...requests.client import find_client
from ...requests.names import OfGroup, find_group_id
from ...requests.options import RemoteOptions, with_options


@with_options(RemoteOptions)
def move(
    options: RemoteOptions,
    group: OfGroup = None,
    *,
    to: Annotated[
        str, Option("--to", metavar="NODE", help="The node that is to own it; default: any other.")
    ] = "",
) -> None:
    """Order the node that owns the group to give it up: another one owns it at once.

    No work moves by it, and no epoch rises. `get nodes` shows which nodes there are.
    """
    client = find_client(options)
    group_id = find_group_id(options, client, group)
    query = {"to": to} if to else dict[str, str]()
    moved = client.post(OwnerMove, "groups", group_id, "owner", **query)
    say(f"group {moved.group_id}: {moved.message}")


VERBS = {"move": move}
"""The verbs of `fairlead owner`."""
