"""Lists of connectors: pages, entity tags, and what is encoded and compressed once."""

import gzip

import pytest
from rest.conftest import RestApi, service_over
from rest.test_reach import HIDDEN, LOCKED, SEEN, limited

from fairlead.events.model import Resource
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.security.rights import Role
from fairlead_tests.rest.client import Client

WAYS = (
    "",
    "expand=nothing",
    "expand=status",
    "expand=info&expand=progress",
    "expand=status&extended=true",
)


@pytest.fixture
def three(api: RestApi) -> RestApi:
    """A group with three connectors, of which the second has a task."""
    for name in ("a&b", SEEN, HIDDEN):
        assert api.client.post("/connectors", json={"name": name, "config": LOCKED}).is_success
    api.group.ask("seat", "w1")
    api.group.ask("settle")
    api.group.ask("split", SEEN, {"part": "1"})
    return api


@pytest.mark.parametrize("way", WAYS)
def test_the_pages_of_a_list_are_together_the_list(three: RestApi, way: str) -> None:
    whole = three.client.get(f"/connectors?{way}")
    first = three.client.get(f"/connectors?{way}&limit=2")
    assert first.links["next"]["url"].startswith("?")
    second = three.client.get(f"/connectors{first.links['next']['url']}")
    assert (len(first.json()), len(second.json())) == (2, 1)
    pages = [*first.json(), *second.json()] if not way else first.json() | second.json()
    assert pages == whole.json()
    assert "link" not in whole.headers
    assert "link" not in second.headers
    after = three.client.get("/connectors", params={"limit": "1", "after": "a&"})
    assert (after.json(), after.links["next"]["url"]) == (["a&b"], "?limit=1&after=a%26b")
    assert three.client.get("/connectors?after=zz").json() == []
    assert three.client.get("/connectors?limit=0").status_code == 400


@pytest.mark.parametrize("way", WAYS)
def test_a_list_that_has_not_changed_is_a_304_also_after_a_restart(
    three: RestApi, way: str
) -> None:
    def status(client: Client, tag: str) -> int:
        answer = client.get(f"/connectors?{way}", headers={"If-None-Match": tag})
        assert bool(answer.content) == (answer.status_code == 200)
        return answer.status_code

    viewer = limited(Role.VIEWER, "orders-*")(three)
    tag = three.client.get(f"/connectors?{way}").headers["etag"]
    own = viewer.get(f"/connectors?{way}").headers["etag"]
    assert [status(each, tag) for each in (three.client, viewer)] == [304, 200]
    assert [status(each, own) for each in (three.client, viewer)] == [200, 304]
    three.group.ask("commit", Resource(SEEN, 0), 0, 100, 90)
    three.client.delete(f"/connectors/{HIDDEN}")
    assert status(three.client, tag) == 200
    assert status(viewer, own) == (200 if "progress" in way else 304)
    tag = three.client.get(f"/connectors?{way}").headers["etag"]
    three.service.logs.close()
    restarted = service_over(three.data_dir, three.gateway)
    assert status(Client(make_app(restarted)), tag) == 304
    restarted.logs.close()


def test_a_list_is_compressed_once_for_all_readers(
    three: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed: list[bytes] = []

    def count(body: bytes, *options: int, mtime: int) -> bytes:
        compressed.append(body)
        return compress(body, *options, mtime=mtime)

    compress = gzip.compress
    monkeypatch.setattr(gzip, "compress", count)
    config = {**LOCKED, "note": "long " * 2_000}
    assert three.client.put(f"/connectors/{SEEN}/config", json=config).is_success
    for way in ("expand=info", "expand=progress&expand=info"):
        answers = [three.client.get(f"/connectors?{way}") for _ in range(3)]
        assert [each.headers["content-encoding"] for each in answers] == ["gzip"] * 3
        (plain,) = {each.content for each in answers}
        identity = three.client.get(f"/connectors?{way}", headers={"Accept-Encoding": "identity"})
        assert (identity.content, compressed) == (plain, [plain])
        assert "content-encoding" not in identity.headers
        compressed.clear()
