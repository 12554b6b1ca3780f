"""The gateway on a real actor system, with the real supervisor and a group without workers."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.actors.worker.instructions import Timing
from fairlead.runtime.cluster.messages import Begin, Begun
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.cluster.spec import EngineSpec, NodeSpec
from fairlead.runtime.interfaces.rest.commands.gateway import CommandGateway
from fairlead.runtime.interfaces.rest.server.errors import Unanswered
from fairlead.runtime.node.supervisor.supervisor import Supervisor
from fairlead_tests.actor_system import Running, actor_system, eventually
from fairlead_tests.rest.process import running

__all__ = ["actor_system"]

pytestmark = pytest.mark.cluster
PUT = PutConnector("connect", "a", {"name": "a"}, create_only=True)


@pytest.fixture
def gateway(actor_system: Running) -> Iterator[CommandGateway]:
    node = NodeSpec(
        actor_system.folder.resolve(),
        "connect",
        "127.0.0.1:8083",
        (),
        GroupSettings(),
        Timing(),
        EngineSpec("noop"),
    )
    supervisor = actor_system.system.create(Supervisor, "supervisor")
    assert actor_system.system.ask(supervisor, Begin(node), 20) == Begun()
    address = actor_system.address
    folder = RunFolder(actor_system.folder)
    folder.path.mkdir(exist_ok=True)
    (folder.path / "key").touch(0o600)
    (folder.path / "key").write_bytes(address.key)
    folder.announce(address, "", "connect")
    made = CommandGateway(actor_system.folder)
    yield made
    made.close()


def group_pid(gateway: CommandGateway) -> int:
    pid = asyncio.run(gateway.locate("connect")).pid
    return pid or 0


def test_commands_are_carried_out_and_answered(gateway: CommandGateway) -> None:
    created = asyncio.run(gateway.carry_out(PUT))
    assert (created.reply.error, created.reply.created, created.repeated) == (
        Error.NONE,
        True,
        False,
    )
    again = asyncio.run(gateway.carry_out(PUT)).reply
    assert again == CommandReply(
        Error.ALREADY_EXISTS,
        "connector a already exists and stays as it is: put its config to change it",
    )


def test_a_group_that_was_restarted_is_found_again(gateway: CommandGateway) -> None:
    asyncio.run(gateway.carry_out(PUT))
    old = group_pid(gateway)
    os.kill(old, signal.SIGKILL)
    deleted = asyncio.run(gateway.carry_out(DeleteConnector("connect", "a")))
    assert deleted.reply.error is Error.NONE
    eventually(lambda: group_pid(gateway) not in {0, old}, "the group has a new process")


def test_many_ask_at_once_and_all_are_answered(gateway: CommandGateway) -> None:
    async def ask_all() -> set[Error]:
        orders = [PutConnector("connect", f"c{n}", {"name": f"c{n}"}) for n in range(50)]
        outcomes = await asyncio.gather(*(gateway.carry_out(order) for order in orders))
        return {each.reply.error for each in outcomes}

    assert asyncio.run(ask_all()) == {Error.NONE}


def test_the_processes_of_the_node_are_told(gateway: CommandGateway) -> None:
    node = asyncio.run(gateway.describe_node())
    assert ([each.name for each in node.groups], node.workers) == (["connect"], ())


def test_a_system_that_went_away_is_told_as_such(
    gateway: CommandGateway, actor_system: Running
) -> None:
    asyncio.run(gateway.describe_node())
    actor_system.shut_down()
    for _ in range(2):
        with pytest.raises(Unanswered, match=r"nothing was changed|is not known"):
            asyncio.run(gateway.carry_out(PUT))


def test_a_request_goes_all_the_way_to_the_group_and_back(
    gateway: CommandGateway, actor_system: Running, tmp_path: Path
) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": str(tmp_path / "in"),
        "sink.format": "parquet",
        "sink.path": str(tmp_path / "out"),
    }
    with running(actor_system.folder) as (_, client):
        created = client.put("/connectors/a/config", json=config)
        assert (created.status_code, created.json()["config"]) == (201, {**config, "name": "a"})
        os.kill(group_pid(gateway), signal.SIGKILL)
        changed = client.put("/connectors/a/config", json={**config, "tasks.max": "2"})
        assert (changed.status_code, changed.json()["config"]["tasks.max"]) == (200, "2")
        assert client.get("/health").json()["status"] == "healthy"
        assert client.delete("/connectors/a").status_code == 204
