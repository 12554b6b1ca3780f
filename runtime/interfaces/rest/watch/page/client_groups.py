"""Tells the readers of the page which groups of Kafka clients have changed.

There may be a hundred thousand of them, and a page shows a few: so a message has their ids, and
the page reads again what is on its screen. Nothing is looked at unless a page follows.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

from msgspec import structs

from ....replies.live.state import PageChange
from ...commands.service import Service
from ...reading.logs import FollowedGroup

PERIOD_SECONDS: Final = 0.5
"""Consumers commit all the time: this is how often it is told."""


class ClientGroupWatch:
    """Publishes changes of groups of Kafka clients; `follow` is for the thread of the page."""

    def __init__(self, service: Service, clock: Callable[[], float] = monotonic) -> None:
        self._service, self._clock = service, clock
        self._due = clock()
        """When the next look is."""

    def follow(self, group_id: str, _: FollowedGroup) -> None:
        """Publish which groups have changed since the last look; called with the node's groups."""
        feed, now = self._service.page, self._clock()
        view = feed.view
        is_own = group_id == self._service.group_id
        if not is_own or view is None or not feed.is_watched or now < self._due:
            return
        self._due = now + PERIOD_SECONDS
        changed = self._service.logs.shards.take_changed()
        if changed is None or changed:
            named = sorted(changed) if changed else None
            message = PageChange(feed.sequence + 1, view.position, view.time_ms)
            feed.publish(view, structs.replace(message, client_groups=named))
