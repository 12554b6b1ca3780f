"""Systems seen from outside: starting, reaching and naming them, and what their deaths leave."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fairlead.actors.transport.crashes import TRACES
from fairlead.actors.transport.ports import SystemAddress
from fairlead.actors.transport.system import (
    CannotStartError,
    UnreachableError,
    connect,
    start_system,
)
from fairlead.actors.transport.tcp import SEND_SECONDS
from fairlead_tests.actor_system import (
    Running,
    eventually,
    free_address,
    isolated,
    listeners,
    log_of,
    runs,
    title_of,
)
from fairlead_tests.actors_transport.probe_actors import Create, Echo, Late, Litterbug, Parent

ASK = 30.0
pytestmark = pytest.mark.cluster
GOOD = bytes(32)


def test_importing_the_transport_starts_nothing() -> None:
    probe = (
        "import os, threading, psutil, fairlead.actors.transport.system; me = psutil.Process();"
        "print(me.children(), me.net_connections(), threading.active_count())"
    )
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == "[] [] 1\n"


def test_an_address_does_not_show_its_key() -> None:
    address = free_address()
    assert repr(address) == f"SystemAddress(host='127.0.0.1', port={address.port})"


@pytest.mark.parametrize(
    ("host", "port", "key"),
    [
        ("0.0.0.0", 1, GOOD),
        ("10.0.0.1", 1, GOOD),
        ("localhost", 1, GOOD),
        ("127.0.0.1", 0, GOOD),
        ("127.0.0.1", 1, b"short"),
    ],
)
def test_an_address_is_on_loopback_and_has_a_key(host: str, port: int, key: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        SystemAddress(host, port, key)


def test_connecting_starts_nothing() -> None:
    address, before = free_address(), set(psutil.Process().children())
    with pytest.raises(UnreachableError, match=f"no cluster runs on port {address.port}"):
        connect(address)
    assert set(psutil.Process().children()) <= before


def test_another_key_does_not_connect(shared_system: Running) -> None:
    address = shared_system.address
    with pytest.raises(UnreachableError, match="does not answer to this cluster's key"):
        connect(SystemAddress(address.host, address.port, secrets.token_bytes(32)))
    shared_system.system.close()
    shared_system.system = connect(address)
    assert shared_system.system.alive()


def test_only_the_node_that_is_meant_answers_at_an_address(tmp_path: Path) -> None:
    mine = replace(free_address(), node="mine")
    with isolated(tmp_path / "system", mine) as running:
        running.system.close()
        with pytest.raises(UnreachableError, match=f"another node .* on port {mine.port}"):
            connect(replace(mine, node="another"))
        running.system = connect(mine)
        assert running.system.alive()


def test_a_port_that_is_taken_is_no_place_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.actors.transport.system.PORT_SECONDS", 0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = SystemAddress("127.0.0.1", other.getsockname()[1], secrets.token_bytes(32))
        told = f"port {address.port} .* is taken by .* \\(pid {os.getpid()}\\)"
        with pytest.raises(CannotStartError, match=told):
            start_system(address, log_file=tmp_path / "log", name="test")


def test_a_system_starts_on_the_main_thread_only(tmp_path: Path) -> None:
    refused = list[str]()

    def start() -> None:
        try:
            start_system(free_address(), log_file=tmp_path / "log", name="test")
        except CannotStartError as error:
            refused.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert refused == ["a system dies with the thread that started it: use the main thread"]


def test_a_name_is_found_and_not_made(shared_system: Running) -> None:
    system = shared_system.system
    assert system.named("supervisor") is None
    created = system.create(Echo, "supervisor")
    assert system.named("supervisor") == created
    assert system.create(Echo, "supervisor") == created
    assert len(shared_system.titled("fairlead: echo supervisor")) == 1
    system.stop(created)
    eventually(lambda: system.named("supervisor") is None, "the name is free again")


def test_every_process_has_a_title(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent, "supervisor")
    shared_system.system.ask(shared_system.system.ask(parent, Create("W1"), ASK), "hello", ASK)
    titles = [title_of(each) for each in shared_system.processes()[1:]]
    assert titles == ["fairlead: admin test", "fairlead: parent supervisor", "fairlead: echo W1"]


def test_the_key_is_in_no_argument_and_no_environment(shared_system: Running) -> None:
    shared_system.system.create(Echo)
    key = shared_system.address.key
    for process in shared_system.processes():
        for name in ("cmdline", "environ"):
            content = Path(f"/proc/{process.pid}/{name}").read_bytes()
            assert key not in content
            assert key.hex().encode() not in content.lower()


def test_every_socket_listens_on_loopback_only(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent)
    shared_system.system.ask(shared_system.system.ask(parent, Create("a"), ASK), "hello", ASK)
    family = [*shared_system.processes(), psutil.Process()]
    for process in family:
        assert {host for host, _ in listeners([process])} == {"127.0.0.1"}
    everything = [listeners([process]) for process in family]
    assert sum(map(len, everything)) == len(set[tuple[str, int]]().union(*everything))


def test_each_thread_has_its_own_answers(shared_system: Running) -> None:
    echo = shared_system.system.create(Echo)
    wrong = list[object]()

    def converse(name: str) -> None:
        with shared_system.system.private() as line:
            for number in range(25):
                answer = line.ask(echo, (name, number), ASK)
                if answer != (name, number):
                    wrong.append(answer)

    threads = [threading.Thread(target=converse, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_private_lines_leave_no_socket(shared_system: Running) -> None:
    echo = shared_system.system.create(Echo)
    before = psutil.Process().num_fds()
    for _ in range(5):
        with shared_system.system.private() as line:
            assert line.ask(echo, "hello", ASK) == "hello"
    assert psutil.Process().num_fds() == before


def test_a_question_uses_the_connections_of_one_that_was_answered(shared_system: Running) -> None:
    echo, me = shared_system.system.create(Echo), psutil.Process()
    answered = shared_system.system.begin(echo, "hello")
    assert answered.answer(ASK) == "hello"
    answered.close()
    before = me.net_connections()
    for number in range(5):
        question = shared_system.system.begin(echo, number)
        assert question.answer(ASK) == number
        question.close()
    assert me.net_connections() == before


def test_a_late_reply_is_not_taken_for_that_to_the_next_question(shared_system: Running) -> None:
    late = shared_system.system.create(Late)
    former = shared_system.system.begin(late, 0.5)
    assert former.answer(0.0) is None
    former.close()
    question = shared_system.system.begin(late, 1.0)
    assert question.answer(ASK) == 1.0
    question.close()


def test_a_question_to_an_actor_that_has_ended_is_lost_at_once(shared_system: Running) -> None:
    echo = shared_system.system.create(Echo)
    asked = shared_system.system.begin(echo, "pid")
    pid = asked.answer(ASK)
    asked.close()
    process = psutil.Process(int(str(pid)))
    process.kill()
    # Not its title: that is gone a moment before its sockets are.
    eventually(lambda: not runs(process), "it has ended")
    question = shared_system.system.begin(echo, "hello")
    assert question.answer(SEND_SECONDS / 2) is None
    assert question.is_lost
    question.close()


def test_the_children_of_a_killed_actor_are_gone(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent, "supervisor")
    for name in "ab":
        child = shared_system.system.ask(parent, Create(name), ASK)
        shared_system.system.ask(child, "hello", ASK)
    children = [
        *shared_system.titled("fairlead: echo a"),
        *shared_system.titled("fairlead: echo b"),
    ]
    (supervisor,) = shared_system.titled("fairlead: parent supervisor")
    supervisor.kill()
    eventually(lambda: not any(map(runs, children)), "its children are gone")
    eventually(lambda: shared_system.system.named("supervisor") is None, "its name is free")
    assert shared_system.system.alive()


def test_a_killed_admin_takes_all_along_and_the_port_is_free(tmp_path: Path) -> None:
    address = free_address()
    with isolated(tmp_path / "first", address) as first:
        parent = first.system.create(Parent)
        first.system.ask(first.system.ask(parent, Create("a"), ASK), "hello", ASK)
        below = first.processes()[1:]
        first.titled("fairlead: admin test")[0].kill()
        eventually(lambda: not any(map(runs, below)), "all are gone")
        assert not first.system.alive()
        assert first.end() == 0
        with isolated(tmp_path / "second", address) as second:
            assert second.system.ask(second.system.create(Echo), "hello", ASK) == "hello"


def test_a_killed_launcher_takes_all_along(actor_system: Running) -> None:
    parent = actor_system.system.create(Parent)
    child = actor_system.system.ask(parent, Create("a"), ASK)
    actor_system.system.ask(child, "hello", ASK)
    family = actor_system.processes()
    assert len(family) == 4
    actor_system.launcher.send_signal(signal.SIGKILL)
    eventually(lambda: not any(map(runs, family)), "all are gone")


def test_a_hung_actor_does_not_keep_the_system(actor_system: Running) -> None:
    actor_system.system.create(Echo)
    family = actor_system.processes()
    actor_system.titled("fairlead: echo")[0].send_signal(signal.SIGSTOP)
    actor_system.shut_down()
    assert not any(map(runs, family))


def test_shutdown_leaves_nothing(actor_system: Running) -> None:
    parent = actor_system.system.create(Parent)
    actor_system.system.ask(actor_system.system.ask(parent, Create("a"), ASK), "hello", ASK)
    family = actor_system.processes()
    actor_system.shut_down()
    assert [each for each in family if runs(each)] == []
    with pytest.raises(UnreachableError):
        connect(actor_system.address)
    files = {path.name for path in (actor_system.folder / "logs").iterdir()}
    assert files <= {"actors.log", "thespian.log", TRACES}
    assert "Traceback" not in log_of(actor_system.folder)


def test_shutdown_ends_what_actors_left_behind(actor_system: Running) -> None:
    actor_system.system.ask(actor_system.system.create(Litterbug), 1, ASK)
    family = actor_system.processes()
    assert [each.name() for each in family].count("sleep") == 1
    actor_system.shut_down()
    # A process that was killed ends when it is its turn.
    eventually(lambda: not any(map(runs, family)), "all are gone")


def test_a_file_left_outside_is_noticed(tmp_path: Path) -> None:
    litter = str(tmp_path / "litter")
    with (
        pytest.raises(pytest.fail.Exception, match=f"left behind: open {litter}$"),
        isolated(tmp_path / "system") as running,
    ):
        running.system.ask(running.system.create(Litterbug), litter, ASK)


def test_a_process_left_behind_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_tests.actor_system.LEAK_SECONDS", 3.0)

    def litter() -> None:
        with isolated(tmp_path / "system") as running:
            running.system.ask(running.system.create(Litterbug), 1, ASK)
            running.launcher.kill()
            running.launcher.wait()

    before = set(psutil.Process().children())
    with pytest.raises(pytest.fail.Exception, match=r"left behind: process .*name='sleep'"):
        litter()
    assert set(psutil.Process().children()) <= before
