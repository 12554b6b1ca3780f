"""Groups of Kafka's clients on the command line: from the files, and as a cluster tells them."""

import json
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run
from rest.conftest import service_over

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway
from fairlead_tests.shards.recorded import live

HISTORY = """\
EPOCH  TIME                  CAUSE                                     BY  MOVED  NEW  KEPT  SETTLED
1      2023-11-14T22:13:20Z  member-joined app(1111aaaa)                                     with 2
2      2023-11-14T22:13:20Z  subscription-changed app(1111aaaa):           0      4    0     0.000 s
                             topics none > orders
3      2023-11-14T22:13:21Z  member-joined web(7QyFKHtl)                   2      0    2     0.200 s
4      2023-11-14T22:13:22Z  member-left web(7QyFKHtl)                     2      0    2     0.050 s
5      2023-11-14T22:13:22Z  member-joined w1(X3yFKHtl)                    2      0    2     0.200 s
6      2023-11-14T22:13:28Z  session-expired app(1111aaaa)                 2      0    2     1.550 s
"""
LOST = """\
Epoch:        6
Time:         2023-11-14T22:13:28.700Z
Cause:        session-expired app(1111aaaa)
Target:       assignment epoch 6
Assignor:     uniform
Computed by:  the coordinator
Kept:         2 (w1(X3yFKHtl) 2)

PHASE    TOOK     NOTE
detect   6.000 s  since the member was last heard of
compute  0.000 s
revoke            nobody had to give up anything
release  1.550 s
total    7.550 s

PARTITION  REASON                      FROM           TO            DOWN
orders-0   departure, session-expired  app(1111aaaa)  w1(X3yFKHtl)  1.550 s to 7.550 s
orders-1   departure, session-expired  app(1111aaaa)  w1(X3yFKHtl)  1.550 s to 7.550 s
"""
GENERATION = """\
Epoch:     2
Time:      2023-11-14T22:13:30.250Z
Cause:     member-joined y(3)
Members:   x(1), y(3)
Protocol:  consumer range
Led by:    x(1)
Assigned:  2023-11-14T22:13:30.250Z
Kept:      2 (x(1) 2)

PHASE   TOOK     NOTE
assign  0.000 s
total   0.000 s

PARTITION  REASON   FROM  TO    DOWN
orders-2   balance  x(1)  y(3)
orders-3   balance  x(1)  y(3)
"""
MOVES = """\
EPOCH  TIME                  FROM    TO      DOWN  WHY
1      2023-11-14T22:13:30Z          x(1)          member-joined x(1): new
2      2023-11-14T22:13:30Z  x(1)    y(3)          member-joined y(3): balance
3      2023-11-14T22:13:30Z  y(3)    x(1)          member-left y(3): departure, member-left
4      2023-11-14T22:13:30Z  x(1)    modern        group-upgraded modern: balance
5      2023-11-14T22:13:30Z  modern  x(1)          member-left modern: departure, member-left
"""
STORY = """\
epoch 2  2023-11-14T22:13:30.250Z  member-joined y(3)
    generation of 2 members, consumer range, led by x(1)
    assigned after 0.000 s
    moved     orders-2..3 x(1) -> y(3)
    kept      2 (x(1) 2)
    settled   0.000 s later
"""
GROUPS = """\
no groups

Groups of Kafka's clients
GROUP     TYPE      PROTOCOL  STATE   EPOCH  MEMBERS  PARTITIONS  ASSIGNOR
billing   consumer  consumer  Stable  6      1        4/4         uniform
pay       classic   consumer  Stable  5      1        4           range
registry  classic   game      Stable  1      1        0           chess
resets    classic             Empty   0      0        0
"""
BILLING = """\
Group:             billing
Type:              consumer
State:             Stable
Group epoch:       6
Assignment epoch:  6
Assignor:          uniform
Last rebalance:    session-expired app-1111aaaa, 2023-11-14T22:13:28.700Z
Shard:             0

MEMBER        STATE   EPOCH  HAS          CLIENT ID  INSTANCE ID  HOST      MEMBER ID
w1(X3yFKHtl)  STABLE  6      orders-0..3  web        w1           10.0.0.7  X3yFKHtlTf2r6QOUsL83KA

Topics
TOPIC   PARTITIONS  TOPIC ID
orders  4           ORDERS

Subscriptions
MEMBER        SUBSCRIBES TO  PATTERN  WHICH MATCHES
w1(X3yFKHtl)  orders

Committed offsets
TOPIC   PARTITION  OFFSET  COMMITTED                 MEMBER        METADATA
orders  1          17      2023-11-14T22:13:30.250Z  w1(X3yFKHtl)
orders  2          4       2023-11-14T22:13:30.250Z  w1(X3yFKHtl)  note
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("node")
    live(data_dir)
    return data_dir


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("history", "--group", "billing"), HISTORY),
        (("explain", "--group", "billing"), LOST),
        (("explain", "--group", "pay", "2"), GENERATION),
        (("explain", "--group", "pay", "orders-3"), MOVES),
        (("log", "story", "--group", "pay", "--from", "2", "--until", "2"), STORY),
    ],
    ids=["history", "explain", "generation", "moves", "story"],
)
def test_the_files_tell_why_a_partition_moved(
    run: Run, folder: Path, words: tuple[str, ...], said: str
) -> None:
    assert run(*words, "--data-dir", folder) == (0, said, "")


def test_the_log_of_one_group_is_shown_alone(run: Run, folder: Path) -> None:
    code, out, _ = run("log", "show", "--group", "pay", "--data-dir", folder)
    lines = [line.split(maxsplit=3) for line in out.splitlines()]
    assert (code, len({offset for offset, *_ in lines})) == (0, len(lines))
    assert lines[3][3] == (
        "classic generation 2: member-joined y(3); consumer range, led by x(1), assigned:"
        " x(1) = orders-0..1; y(3) = orders-2..3"
    )
    assert "billing" not in out
    offsets = run("log", "show", "--offsets", "--group", "billing", "--data-dir", folder)
    assert offsets.out.endswith("orders-2 is read up to 4, 'note'\n")


def test_a_group_is_replayed_as_it_was_at_an_offset_of_the_log(run: Run, folder: Path) -> None:
    shown = run("log", "show", "--group", "pay", "--data-dir", folder).out.splitlines()
    second = shown[3].split()[0]
    until = ("--until", str(int(second) + 1), "--group", "pay", "--data-dir", folder)
    told = run("log", "replay", *until).out
    assert "Generation:      2\n" in told
    assert "x(1)    STABLE  2      orders-0..1  x          10.0.0.7  x-1\n" in told


def test_the_logs_that_groups_share_are_verified_and_backed_up(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    done = run("log", "backup", "--shards", "saved", "--data-dir", folder)
    assert done == (0, "the logs of 1 shard backed up to saved\n", "")
    (tmp_path / "node").mkdir()
    (tmp_path / "saved").rename(tmp_path / "node" / "shards")
    told = run("history", "--group", "billing", "--data-dir", tmp_path / "node")
    assert told == (0, HISTORY, "")
    verified = run("log", "verify", "--data-dir", tmp_path / "node", "-o", "json")
    states = {each["log"]: each["state"] for each in json.loads(verified.out)}
    assert states == {
        "control": "missing",
        "offsets": "missing",
        "shard 0 control": "sound",
        "shard 0 offsets": "sound",
    }
    none = run("log", "backup", "--shards", "more", "--data-dir", tmp_path / "nowhere")
    assert (none.code, "there are no shards at" in none.err) == (1, True)


def test_a_group_that_no_log_tells_of_is_not_there(run: Run, folder: Path) -> None:
    ended = run("history", "--group", "nobody", "--data-dir", folder)
    assert (ended.code, "there is no log at" in ended.err) == (1, True)
    ended = run("explain", "clicks-1", "--group", "pay", "--data-dir", folder)
    assert (ended.code, "nothing of the name clicks-1 changed hands" in ended.err) == (1, True)


def test_a_cluster_lists_them_and_tells_of_one(run: Run, cluster: Cluster, folder: Path) -> None:
    service = service_over(folder, FakeGateway(None))
    client = Client(make_app(service))
    for path in ("/groups", "/groups/billing"):
        cluster.answer("GET", path, client.get(path).json())
    service.logs.close()
    assert run("get", "groups", "--url", cluster.url) == (0, GROUPS, "")
    for words in (("describe", "group", "billing"), ("status", "--group", "billing")):
        assert run(*words, "--url", cluster.url) == (0, BILLING, "")
    counted = run("status", "--url", cluster.url).out
    assert "consumer  Stable  1       1\n" in counted
    assert "registry" not in counted
