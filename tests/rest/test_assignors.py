from rest.conftest import RestApi

from fairlead_tests.rest.client import Client

BUILT_IN = ["balanced", "deferred", "simple-cooperative", "eager", "incremental"]


def test_assignors_are_listed_with_where_they_come_from_and_the_process_that_runs_them(
    client: Client,
) -> None:
    assert client.get("/assignors").json() == {
        "assignors": [{"name": name, "origin": "built in"} for name in BUILT_IN],
        "processes_known": True,
        "processes": [
            {
                "pid": 77,
                "state": "running",
                "restarts": 1,
                "detail": "process 76 was killed: w1 waited",
            }
        ],
    }


def test_without_the_supervisor_only_the_process_is_not_known(api: RestApi) -> None:
    api.gateway.group = None
    told = api.client.get("/assignors").json()
    assert (len(told["assignors"]), told["processes_known"], told["processes"]) == (5, False, [])
