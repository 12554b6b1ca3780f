from pathlib import Path

import pytest

from fairlead.runtime.pipeline.plugins.ivy import Coordinates, Ivy, NotFetched
from fairlead.runtime.processes.java import Java

CONNECT_FILE = Coordinates("org.apache.kafka", "connect-file", "4.3.0")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("org.apache.kafka:connect-file:4.3.0", CONNECT_FILE),
        ("a.b:c_d:1-rc+1:all", Coordinates("a.b", "c_d", "1-rc+1", "all")),
        ("a:b:1:plugin:tar.gz", Coordinates("a", "b", "1", "plugin", "tar.gz")),
        ("a:b:1::zip", Coordinates("a", "b", "1", "", "zip")),
    ],
)
def test_coordinates_are_spelt_as_read(text: str, meant: Coordinates) -> None:
    assert Coordinates.parse(text) == meant
    assert str(meant) == text


@pytest.mark.parametrize("text", ["", "a", "a:b", "a:b:", "a:b:1:2:3:4", "a:b c:1", "a:../b:1"])
def test_what_names_no_artifact_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not group:artifact:version\[:classifier\[:type\]\]"):
        Coordinates.parse(text)


def ivy_that_says(folder: Path, output: str) -> Ivy:
    (folder / "output").write_text(output)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat {folder}/output\nexit 1\n")
    java.chmod(0o700)
    return Ivy(Java(java, "17"))


NOT_FOUND = "\t\t::          UNRESOLVED DEPENDENCIES         ::\n\n\t\t:: a#b;1: not found\n\n"
NO_FILE = "\t\t::              FAILED DOWNLOADS            ::\n\n\t\t:: a#b;1!b.tar.gz\n\n"
REFUSED = "\tServer access error at url https://r/b.pom (java.net.ConnectException: refused)\n"
CERTIFICATE = "\tServer access error at url https://r/b.pom (PKIX path building failed)\n"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (NOT_FOUND + NOT_FOUND, "no repository has a:b:1: look whether the name is as there"),
        (NO_FILE, "no repository has a:b:1:b.tar.gz: look whether the name is as there"),
        (
            NOT_FOUND + REFUSED,
            "a:b:1 is not in Ivy's cache, and https://r/b.pom could not be read"
            " (java.net.ConnectException: refused)",
        ),
        (
            NOT_FOUND + CERTIFICATE,
            "the certificate of a repository is not trusted by this Java: name a trust store that"
            " has its authority in `plugin.host.truststore`",
        ),
        ("no room\n\n:: here ::\n", "Ivy failed: no room; here"),
    ],
)
def test_a_failure_is_told_in_plain_words(tmp_path: Path, output: str, reason: str) -> None:
    with pytest.raises(NotFetched) as failed:
        ivy_that_says(tmp_path, output).fetch([CONNECT_FILE], is_whole=True)
    assert str(failed.value) == reason


def test_what_is_fetched_is_in_the_cache(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(
        '#!/bin/sh\nwhile [ "$1" != -cachepath ]; do shift; done\necho /a.jar:/b.jar > $2'
    )
    java.chmod(0o700)
    found = Ivy(Java(java, "17")).fetch([CONNECT_FILE], is_whole=False)
    assert found == [Path("/a.jar"), Path("/b.jar")]
