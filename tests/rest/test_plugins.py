from rest.client import Client

NAME = "rest.plugins.Locked"
VALIDATE = "/connector-plugins/Locked/config/validate"


def test_plugins_are_listed_with_what_they_promise(client: Client) -> None:
    listed = client.get("/connector-plugins").json()
    assert client.get("/connector-plugins?connectorsOnly=false").json() == listed
    assert listed[0]["class"].endswith(".SparkPipeline")
    assert listed[1] == {
        "class": NAME,
        "type": "source",
        "version": "0",
        "delivery": "at-least-once",
    }


def test_the_keys_of_a_class_are_found_by_its_short_and_its_full_name(client: Client) -> None:
    short = client.get("/connector-plugins/Locked/config").json()
    assert short == client.get(f"/connector-plugins/{NAME}/config").json()
    password = next(each for each in short if each["name"] == "password")
    assert (password["type"], password["default_value"]) == ("PASSWORD", "")


def test_a_config_is_validated_in_the_shape_of_connect(client: Client) -> None:
    config = {"connector.class": NAME, "name": "a", "tasks.max": 0, "password": "hunter2"}
    told = client.put(VALIDATE, json=config).json()
    values = {each["value"]["name"]: each["value"] for each in told["configs"]}
    assert (told["name"], told["error_count"]) == (NAME, 1)
    assert values["tasks.max"] == {
        "name": "tasks.max",
        "value": "0",
        "recommended_values": [],
        "errors": ["must be at least 1"],
        "visible": True,
    }
    assert values["password"]["value"] == "********"


def test_a_config_of_another_class_is_refused(client: Client) -> None:
    for other in ("SparkPipeline", "Unknown"):
        assert client.put(VALIDATE, json={"connector.class": other}).json() == {
            "error_code": 400,
            "message": f"Included connector type {other} does not match request type Locked",
        }


def test_a_class_that_is_not_installed_is_a_404(client: Client) -> None:
    message = "no connector class Lokced is installed here: did you mean Locked?"
    path = "/connector-plugins/Lokced/config"
    replies = (client.get(path), client.put(f"{path}/validate", json={}))
    assert [each.json() for each in replies] == [{"error_code": 404, "message": message}] * 2
