"""`/groups/{g}/compaction`: the history of a group that runs is compacted when somebody asks."""

from rest.conftest import RestApi

from fairlead.actors.messages.commands import CompactHistory


def test_a_compaction_is_begun_told_and_refused_while_one_runs(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    path = "/groups/connect/compaction"
    none = {"group_id": "connect", "state": "none", "trimmed": 0, "message": ""}
    running = {**none, "state": "running", "trimmed": 500}
    assert api.client.get(path).json() == none
    begun = api.client.put(f"{path}?keep_epochs=5", headers={"X-Request-Id": "r-1"})
    assert (begun.status_code, begun.json()) == (202, running)
    asked = CompactHistory("connect", None, 5, None, "rest 127.0.0.1", "r-1")
    assert api.gateway.compactions == [asked]
    refused = api.client.put(path)
    assert (refused.status_code, refused.json()["message"]) == (
        409,
        "the history of group connect is being compacted, by an earlier request: 500 entries so"
        " far. Nothing else was begun; ask again when that one is done, as GET"
        " /groups/connect/compaction tells",
    )
    assert api.client.get(path).json() == running
    assert api.client.put(f"{path}?keep_epochs=0").status_code == 400
    assert api.client.put("/groups/none/compaction").status_code == 404
