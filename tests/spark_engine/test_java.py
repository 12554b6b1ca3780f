"""What Spark's JVM is started with, and which settings are refused."""

import sys
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest

from fairlead.runtime.pipeline.engines.embedded import attach
from fairlead.runtime.pipeline.engines.embedded.jvm import mask_of
from fairlead.runtime.pipeline.engines.engine import JvmHeap
from fairlead.runtime.pipeline.engines.java import JvmLaunch, prepare
from fairlead.runtime.pipeline.engines.settings import (
    REFUSED,
    SettingRefused,
    properties,
    refuse_unsafe,
    settings,
)
from fairlead.runtime.processes.java import Java

SUBMIT = "org.apache.spark.deploy.SparkSubmit"


@pytest.mark.parametrize("name", [*REFUSED, "master"])
def test_settings_that_safety_rests_on_are_refused(name: str) -> None:
    with pytest.raises(SettingRefused, match=name):
        refuse_unsafe({name: "x"})


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_safety_rests_on_are_refused_as_java_options_too(name: str) -> None:
    for options in (f"-D{name}=x", f"-Xss4m '-D{name}=x y'"):
        with pytest.raises(SettingRefused, match=f"-D{name} cannot be set"):
            refuse_unsafe({"spark.driver.extraJavaOptions": options})
    refuse_unsafe({"spark.driver.extraJavaOptions": "-Xss4m -Dmine=1"})


def test_other_settings_go_over_ours() -> None:
    mine = {"spark.sql.shuffle.partitions": "7", "spark.app.name": "mine"}
    refuse_unsafe(mine)
    ours = settings(Path("/w"), 2, {})
    assert settings(Path("/w"), 2, mine) == ours | mine


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443"])
def test_a_driver_of_yarn_or_kubernetes_is_started_here_and_knows_what_the_site_says_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    conf = {"spark.driver.host": "10.0.0.7", "spark.kubernetes.container.image": "ours:1"}
    launch = JvmLaunch(Java(Path("/java"), "17"), "1g", settings(tmp_path, 2, conf, master=master))
    command, environ = prepare(launch, tmp_path, tmp_path / "logs" / "log", tmp_path / "info")
    assert command[command.index("-cp") + 1].split(":")[1:] == ["/etc/hadoop"]
    file = tmp_path / "spark.properties"
    assert command[-4:] == [SUBMIT, "--properties-file", str(file), "pyspark-shell"]
    assert environ["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert (environ["SPARK_LOCAL_IP"], environ["PYSPARK_PYTHON"]) == ("10.0.0.7", sys.executable)
    told = file.read_text()
    escaped = master.replace(":", "\\:")
    for each in (
        f"spark.master={escaped}",
        "spark.driver.host=10.0.0.7",
        "spark.kubernetes.container.image=ours\\:1",
        "spark.authenticate=true",
        "spark.network.crypto.enabled=true",
        "spark.io.encryption.enabled=true",
    ):
        assert f"{each}\n" in told
    assert "spark.authenticate.secret" not in told, "Spark makes one for each driver"


def test_names_of_files_are_utf_8_in_the_locale_without_a_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = JvmLaunch(Java(Path("/java"), "17"), "1g", settings(tmp_path, 2, {}))
    for number, (told, has) in enumerate([("C", "C.UTF-8"), ("en_GB.UTF-8", "en_GB.UTF-8")]):
        monkeypatch.setenv("LC_ALL", told)
        folder = tmp_path / str(number)
        folder.mkdir()
        _, environ = prepare(launch, folder, tmp_path / "logs" / "log", tmp_path / "info")
        assert environ["LC_ALL"] == has


def test_properties_survive_what_values_hold() -> None:
    assert properties({"spark.a": " b=c\\d\ne", "spark.x:y": "#"}) == (
        "spark.a=\\ b\\=c\\\\d\\ne\nspark.x\\:y=\\#\n"
    )


def test_secrets_are_masked_by_the_names_of_their_settings() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": "hush", "spark.app.name": "sorry"}
    assert mask_of(conf)("cannot use hush, sorry") == "cannot use ********, sorry"


def test_a_jvm_that_did_not_tell_its_heap_once_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heap, ended, heaps = JvmHeap(1, 2, 3, 4), Event(), list[JvmHeap | None]()
    answers = (OSError("it is short of memory"), Mock(side_effect=[heap, OSError("again"), heap]))
    monkeypatch.setattr(attach, "heap_reader", Mock(side_effect=answers))
    monkeypatch.setattr(attach, "HEAP_SECONDS", 0)

    def set_heap(each: JvmHeap | None) -> None:
        heaps.append(each)
        if len(heaps) == 4:
            ended.set()

    attach.follow_heap(Mock(), ended, set_heap)
    assert heaps == [None, heap, None, heap, None]
