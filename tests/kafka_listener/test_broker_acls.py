"""The access control lists of a broker hold at the listener, from the first answer on."""
# pyright: basic

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.kafka.broker.upstream import Upstream
from fairlead.runtime.kafka.security.acls import AclClient, AclOperation, Authorizer, ResourceKind
from fairlead.runtime.kafka.security.broker_acls import DESCRIBE_ACLS, VERSION, BrokerAcls
from fairlead_tests.kafka_listener.behind import Behind, behind
from fairlead_tests.kafka_listener.served import Counted

ALLOW, DENY, READ, ALTER_CONFIGS, TOPIC, GROUP, LITERAL, PREFIXED = 3, 2, 3, 11, 2, 3, 3, 4
ANN = AclClient("User:ann", "10.0.0.1")


def says(broker: Behind, *resources: tuple[int, str, int, list[tuple[str, int, int]]]) -> None:
    """Set the rules that the broker tells."""
    told: list[dict[str, Any]] = [
        {
            "ResourceType": kind,
            "ResourceName": name,
            "PatternType": pattern,
            "Acls": [
                {"Principal": whose, "Host": "*", "Operation": what, "PermissionType": verdict}
                for whose, what, verdict in rules
            ],
        }
        for kind, name, pattern, rules in resources
    ]
    fine = {"ErrorCode": 0, "ErrorMessage": None, "ThrottleTimeMs": 0}
    broker.says(DESCRIBE_ACLS, VERSION, {**fine, "Resources": told})


def test_the_rules_of_the_broker_are_those_of_the_listener(tmp_path: Path) -> None:
    authorizer = Authorizer(None, frozenset({"User:root"}), allows_without_rules=True)

    def may_read(kind: ResourceKind, *names: str, client: AclClient = ANN) -> list[bool]:
        return [authorizer.allows(client, AclOperation.READ, kind, each) for each in names]

    async def run() -> None:
        counts = Counted(tmp_path)
        async with behind() as broker:
            connect = partial(Upstream, [HostPort("127.0.0.1", broker.port)])
            acls = BrokerAcls(authorizer, connect, counts.warn)
            refused = {"ErrorCode": 54, "ErrorMessage": "No Authorizer", "ThrottleTimeMs": 0}
            broker.says(DESCRIBE_ACLS, VERSION, {**refused, "Resources": []})
            assert not await acls.refresh()
            assert may_read(ResourceKind.GROUP, "a") == [False]
            assert may_read(ResourceKind.GROUP, "a", client=AclClient("User:root", "")) == [True]
            assert authorizer.describable_topics(ANN).filter(["t"]) == ()
            says(
                broker,
                (GROUP, "a-", PREFIXED, [("User:ann", READ, ALLOW), ("User:bob", READ, DENY)]),
                (GROUP, "a-2", LITERAL, [("User:*", READ, DENY)]),
                (GROUP, "c", LITERAL, [("User:bob", ALTER_CONFIGS, ALLOW)]),
                (TOPIC, "*", LITERAL, [("User:bob", READ, ALLOW)]),
                (5, "transactions", LITERAL, [("User:ann", READ, ALLOW)]),
            )
            assert await acls.refresh()
            assert may_read(ResourceKind.GROUP, "a-1", "a-2", "b", "c") == [
                True,
                False,
                True,
                False,
            ]
            assert may_read(ResourceKind.TOPIC, "t") == [False]
            assert not await acls.refresh()
            says(broker)
            assert await acls.refresh()
            assert may_read(ResourceKind.TOPIC, "t") == [True]
            broker.says(DESCRIBE_ACLS, VERSION, {**refused, "Resources": []})
            assert not await acls.refresh()
            assert may_read(ResourceKind.TOPIC, "t") == [True]
        assert "security_disabled: No Authorizer; nobody but super users" in counts.told[0]
        assert counts.told[-1].endswith("; old ones stay")

    asyncio.run(run())
