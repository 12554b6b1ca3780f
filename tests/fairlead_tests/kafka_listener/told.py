"""The REST responses of a node about a group of Kafka clients."""
# pyright: basic

import json
from typing import Any

import httpx

from fairlead_tests.kafka_listener.node import ListenerNode


class Told:
    """The answers of the node's REST interface about one group."""

    def __init__(self, node: ListenerNode, group_id: str) -> None:
        note = json.loads((node.folder / "run" / "node.json").read_text())
        self.url, self._group = str(note["rest"]), group_id

    def group(self, *path: str) -> Any:
        """Return the group, or what lies at a path below it."""
        reply = httpx.get("/".join((f"{self.url.rstrip('/')}/groups", self._group, *path)))
        assert reply.status_code == 200, reply.text
        return reply.json()

    def holders(self) -> dict[str, str]:
        """Return who has each partition, by the ids of members."""
        return {
            each["id"]: member["member_id"]
            for member in self.group()["members"]
            for each in member["assigned"]
        }

    def last_takers(self, partitions: list[str]) -> dict[str, str]:
        """Return the last new owner of each partition, from its moves."""
        return {
            each: self.group("moves", each)["moves"][-1]["handover"]["to"]["member_id"]
            for each in partitions
        }
