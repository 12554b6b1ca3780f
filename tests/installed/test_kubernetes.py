"""The manifests for Kubernetes: by kustomize and by Helm, valid, and right for a node.

The tools are used where they are there: kubectl, helm, and the schemas of kubernetes-validate
(`pip install kubernetes-validate`). What the base itself says is checked without them.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.launcher.commands import DOWN_SECONDS

HOUSE = Path(__file__).parents[2]
FOLDER = HOUSE / "deploy" / "kubernetes"
RULES = HOUSE / "deploy" / "prometheus" / "rules.yml"
LABELS = {"app.kubernetes.io/name": "fairlead"}
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm")
Document = dict[str, Any]


def run(*command: str | Path, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, timeout=60, **more
    )


@cache
def base() -> dict[str, Document]:
    """Return the documents of the base, by kind and name, as they stand in its files."""
    found: dict[str, Document] = {}
    for path in sorted((FOLDER / "base").glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            found[f"{each['kind']} {each.get('metadata', {}).get('name', '')}".strip()] = each
    return found


@cache
def kustomized() -> str:
    built = run("kubectl", "kustomize", FOLDER / "base")
    assert (built.returncode, built.stderr) == (0, "")
    return built.stdout


@cache
def templated(*settings: str) -> str:
    words = [word for setting in settings for word in ("--set", setting)]
    chart = FOLDER / "chart"
    made = run("helm", "template", "fairlead", chart, "--kube-version", "1.32.0", *words)
    assert made.returncode == 0, made.stderr
    return made.stdout


@needs_kubectl
def test_many_hosts_are_pods_that_lose_nothing_with_their_volumes() -> None:
    built = run("kubectl", "kustomize", FOLDER / "many-hosts")
    assert (built.returncode, built.stderr) == (0, "")
    documents = {f"{each['kind']} {each['metadata']['name']}": each for each in documents_in(built)}
    spec = documents["StatefulSet fairlead"]["spec"]
    assert (spec["replicas"], "volumeClaimTemplates" in spec) == (3, False)
    pod = pod_of(documents)
    assert {"name": "data", "emptyDir": {}} in pod["volumes"]
    (container,) = pod["containers"]
    names = [each["name"] for each in container["env"]]
    assert len(names) == len(set(names))
    assert {"containerPort": 9094, "name": "kafka"} in container["ports"]
    (policy,) = (each for name, each in documents.items() if name.startswith("NetworkPolicy"))
    among = {"from": [{"podSelector": {"matchLabels": LABELS}}]}
    assert {**among, "ports": [{"port": "kafka", "protocol": "TCP"}]} in policy["spec"]["ingress"]


def documents_in(built: "subprocess.CompletedProcess[str]") -> list[Document]:
    return [*yaml.safe_load_all(built.stdout)]


def test_the_settings_of_many_hosts_are_valid_but_for_the_files() -> None:
    config = load_config(FOLDER / "many-hosts" / "fairlead.toml", {}, ("node.name=fairlead-0",))
    store = config.store()
    assert store is not None
    assert (store.kind, store.node) == ("postgres", "fairlead-0")


def pod_of(documents: dict[str, Document]) -> Document:
    spec: Document = documents["StatefulSet fairlead"]["spec"]["template"]["spec"]
    return spec


def test_every_resource_of_the_folder_is_built() -> None:
    names = {path.name for path in (FOLDER / "base").glob("*.yaml")} - {"kustomization.yaml"}
    assert {*base()["Kustomization"]["resources"]} == names


def test_a_pod_has_as_few_rights_as_it_can() -> None:
    pod = pod_of(base())
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch"


def test_a_pod_has_more_time_to_end_than_a_node_takes() -> None:
    assert pod_of(base())["terminationGracePeriodSeconds"] > DOWN_SECONDS
    schema = json.loads((FOLDER / "chart" / "values.schema.json").read_text())
    assert schema["properties"]["terminationGracePeriodSeconds"]["minimum"] >= DOWN_SECONDS


def test_the_probes_ask_what_needs_no_login() -> None:
    (container,) = pod_of(base())["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness")}
    probes["readiness"] = container["readinessProbe"]["httpGet"]
    assert {name: each["path"] for name, each in probes.items()} == {
        "startup": "/health/live",
        "liveness": "/health/live",
        "readiness": "/health/ready",
    }


def test_the_settings_of_the_pod_are_valid_and_ask_for_a_token() -> None:
    (container,) = pod_of(base())["containers"]
    variables = {
        each["name"]: each["value"].replace("$(POD_NAMESPACE)", "somewhere")
        for each in container["env"]
        if each["name"].startswith("FAIRLEAD_")
    }
    config = load_config(FOLDER / "base" / "fairlead.toml", variables, ())
    assert config.data_dir == "/var/lib/fairlead/data"
    assert config.rest_authentication == "token"
    assert [each.url for each in config.rest_listeners()] == ["http://0.0.0.0:8083"]
    assert config.place() == "fairlead.somewhere.svc:8083"


def test_what_is_selected_is_the_pod() -> None:
    documents = base()
    pod = documents["StatefulSet fairlead"]["spec"]["template"]["metadata"]["labels"]
    selectors = {
        "services": [documents[f"Service {name}"]["spec"]["selector"] for name in SERVICES],
        "others": [
            documents["StatefulSet fairlead"]["spec"]["selector"]["matchLabels"],
            documents["PodDisruptionBudget fairlead"]["spec"]["selector"]["matchLabels"],
            documents["NetworkPolicy fairlead"]["spec"]["podSelector"]["matchLabels"],
        ],
    }
    assert pod == LABELS
    assert selectors == {"services": [LABELS] * 2, "others": [LABELS] * 3}
    assert documents["StatefulSet fairlead"]["spec"]["serviceName"] == "fairlead-nodes"


SERVICES = ("fairlead", "fairlead-nodes")


def test_the_alerts_of_prometheus_are_those_of_kubernetes(request: pytest.FixtureRequest) -> None:
    """With `--rewrite-samples` both files are written from the rules."""
    ours = FOLDER / "chart" / "files" / "rules.yml"
    operators = FOLDER / "monitoring" / "prometheusrule.yaml"
    text = RULES.read_text()
    if request.config.getoption("--rewrite-samples"):
        ours.write_text(text)
        head, begin, _ = operators.read_text().partition("spec:\n")
        lines = (line for line in text.splitlines(keepends=True) if not line.startswith("#"))
        operators.write_text(
            head + begin + "".join(f"  {line}" if line.strip() else line for line in lines)
        )
    assert ours.read_text() == text
    assert yaml.safe_load(operators.read_text())["spec"] == yaml.safe_load(text)


@needs_kubectl
def test_kustomize_builds_what_stands_in_the_files() -> None:
    built = [*yaml.safe_load_all(kustomized())]
    (policy,) = (each for each in built if each["kind"] == "NetworkPolicy")
    assert policy["spec"] == base()["NetworkPolicy fairlead"]["spec"]
    (node,) = (each for each in built if each["kind"] == "StatefulSet")
    assert node["spec"]["template"]["spec"]["containers"][0]["image"].endswith("/fairlead:0.1.0")
    assert {each["metadata"].get("namespace") for each in built} == {None, "fairlead"}


@needs_helm
def test_the_chart_is_the_base_with_values() -> None:
    made = {f"{each['kind']} {each['metadata']['name']}": each for each in documents_of()}
    pods = [pod_of(made), pod_of(base())]
    (ours,), (theirs,) = (pod["containers"] for pod in pods)
    same = ("securityContext", "startupProbe", "livenessProbe", "readinessProbe", "resources")
    assert {key: ours[key] for key in (*same, "env", "args")} == {
        key: theirs[key] for key in (*same, "env", "args")
    }
    assert pods[0]["securityContext"] == pods[1]["securityContext"]
    assert settings_of(made)["rest.authentication"] == "token"


def settings_of(documents: dict[str, Document]) -> Document:
    return tomllib.loads(documents["ConfigMap fairlead"]["data"]["fairlead.toml"])


@needs_helm
def test_numbers_and_further_hosts_of_a_file_of_values_reach_the_node(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(
        "settings: {log.retention.ms: 7776000000, workers: 3}\nallowedHosts: [etl.example]\n"
    )
    chart = FOLDER / "chart"
    templated = run("helm", "template", "fairlead", chart, "-f", values, "--kube-version", "1.32.0")
    documents = [each for each in yaml.safe_load_all(templated.stdout) if each]
    made = {f"{each['kind']} {each['metadata']['name']}": each for each in documents}
    settings = settings_of(made)
    assert (settings["log.retention.ms"], settings["workers"]) == ("7776000000", "3")
    (container,) = pod_of(made)["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["FAIRLEAD_REST_ALLOWED_HOSTS"].endswith(".svc.cluster.local,etl.example")


def documents_of(*settings: str) -> list[Document]:
    return [each for each in yaml.safe_load_all(templated(*settings)) if each]


@needs_helm
def test_helm_finds_nothing_wrong_and_refuses_wrong_values() -> None:
    chart = FOLDER / "chart"
    assert run("helm", "lint", "--strict", chart).returncode == 0
    kinds = {each["kind"] for each in documents_of("monitoring.enabled=true", "secretName=s")}
    assert {"ServiceMonitor", "PrometheusRule"} <= kinds
    for setting, word in (("frob=1", "frob"), ("settings.listeners=http://:1", "listeners")):
        wrong = run("helm", "template", "x", chart, "--kube-version", "1.32.0", "--set", setting)
        assert (wrong.returncode, word in wrong.stderr) == (1, True)


@pytest.mark.skipif(
    importlib.util.find_spec("kubernetes_validate") is None,
    reason="needs the schemas of kubernetes-validate",
)
@pytest.mark.parametrize("source", ["kustomize", "helm"])
def test_all_documents_are_valid_by_the_schemas_of_kubernetes(source: str, tmp_path: Path) -> None:
    if shutil.which("kubectl" if source == "kustomize" else "helm") is None:
        pytest.skip("needs kubectl, or helm")
    path = tmp_path / "all.yaml"
    path.write_text(kustomized() if source == "kustomize" else templated())
    validate = (sys.executable, "-m", "kubernetes_validate", "-k", "1.32", "--strict", path)
    judged = run(*validate)
    assert (judged.returncode, judged.stdout.count("INFO")) in {(0, 8), (0, 7)}, judged.stdout
