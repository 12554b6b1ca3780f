"""Fetches artifacts of Maven repositories by Apache Ivy, which PySpark ships.

What was fetched stays in Ivy's cache, in the home folder of the user: it is fetched once, and
afterwards without a network.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from ...processes.java import Java
from ..engines.java import spark_home

SECONDS: Final = 900.0
"""How long a call of Ivy may take: it may fetch 100 jars over a slow line."""
_MAVEN: Final = "http://ant.apache.org/ivy/maven"
_PART: Final = r"([A-Za-z0-9_+-][A-Za-z0-9_.+-]*)"
_COORDINATES = re.compile(rf"{_PART}:{_PART}:{_PART}(?::{_PART}?(?::{_PART})?)?")
_MISSING = re.compile(r"^\s+:: (\S+)#(\S+?);([^\s:!]+)(?:!(\S+))?(?:: not found)?$", re.MULTILINE)
_UNREACHABLE = re.compile(r"Server access error at url (\S+) \((.+)\)")
_SHOWN: Final = 5
"""How many lines of an unknown failure are shown."""


class NotFetched(Exception):  # noqa: N818  # says what happened
    """Artifacts could not be fetched; the text says which, and what helps."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The name of an artifact in a Maven repository."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    """What the artifact is beside the jar of its name, such as `plugin`; "" for that jar."""
    type: str = "jar"
    """The ending of its file, such as `tar.gz`."""

    @classmethod
    def parse(cls, text: str) -> "Coordinates":
        """Return what `group:artifact:version[:classifier[:type]]` names; raises `ValueError`."""
        if not (found := _COORDINATES.fullmatch(text)):
            raise ValueError(f"{text!r} is not group:artifact:version[:classifier[:type]]")
        group, artifact, version, classifier, kind = found.groups("")
        return cls(group, artifact, version, classifier, kind or "jar")

    def __str__(self) -> str:
        """Return them as users write them."""
        parts = [self.group, self.artifact, self.version]
        if self.type != "jar":
            parts += [self.classifier, self.type]
        elif self.classifier:
            parts.append(self.classifier)
        return ":".join(parts)


@dataclass(frozen=True, slots=True)
class Ivy:
    """Apache Ivy, run by a Java."""

    java: Java
    repositories: Sequence[str] = ()
    """URLs of Maven repositories that are asked after Maven Central."""
    options: Sequence[str] = ()
    """Options of the JVM, such as its trust store."""

    def fetch(self, artifacts: Sequence[Coordinates], *, is_whole: bool) -> list[Path]:
        """Return the files of artifacts in Ivy's cache, with all that they need if `is_whole`.

        Raises `NotFetched`.
        """
        with TemporaryDirectory(prefix="fairlead-ivy-") as folder:
            wanted, settings, files = (Path(folder, name) for name in ("ivy", "settings", "files"))
            wanted.write_bytes(_module(artifacts, is_whole=is_whole))
            settings.write_bytes(_settings(self.repositories))
            types = dict.fromkeys(["jar", "bundle", *(each.type for each in artifacts)])
            self._run(
                ("-settings", str(settings), "-ivy", str(wanted), "-types", *types),
                ("-cachepath", str(files)),
            )
            return [Path(each) for each in files.read_text().strip().split(":") if each]

    def _run(self, *arguments: Sequence[str]) -> None:
        (jar,) = (spark_home() / "jars").glob("ivy-*.jar")
        command = [str(self.java.command), "-XX:TieredStopAtLevel=1", *self.options]
        command += ["-jar", str(jar), "-warn", *(each for group in arguments for each in group)]
        try:
            ran = subprocess.run(  # noqa: S603  # our own command line
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotFetched(
                f"the repositories have not answered for {SECONDS:.0f} s: what came is kept, so"
                " that another try goes on from there"
            ) from None
        if ran.returncode:
            raise NotFetched(_reason(ran.stdout + ran.stderr))


def _module(artifacts: Sequence[Coordinates], *, is_whole: bool) -> bytes:
    module = Element("ivy-module", {"version": "2.0", "xmlns:m": _MAVEN})
    SubElement(module, "info", organisation="none", module="wanted")
    SubElement(SubElement(module, "configurations"), "conf", name="default")
    dependencies = SubElement(module, "dependencies")
    for each in artifacts:
        dependency = SubElement(
            dependencies,
            "dependency",
            {
                "org": each.group,
                "name": each.artifact,
                "rev": each.version,
                "transitive": str(is_whole).lower(),
                "conf": "default->default" if is_whole else "default->*",
            },
        )
        if each.classifier or each.type != "jar":
            names = {"name": each.artifact, "type": each.type, "ext": each.type}
            classifier = {"m:classifier": each.classifier} if each.classifier else {}
            SubElement(dependency, "artifact", {**names, **classifier})
    return tostring(module)


def _settings(repositories: Sequence[str]) -> bytes:
    settings = Element("ivysettings")
    SubElement(settings, "settings", defaultResolver="all")
    # Without a lock two processes that fetch the same read each other's half-written files.
    SubElement(settings, "caches", lockStrategy="artifact-lock-nio")
    chain = SubElement(SubElement(settings, "resolvers"), "chain", name="all", returnFirst="true")
    SubElement(chain, "ibiblio", name="central", m2compatible="true")
    for number, url in enumerate(repositories):
        SubElement(chain, "ibiblio", name=f"further-{number}", m2compatible="true", root=url)
    return tostring(settings)


def _reason(output: str) -> str:
    """Return what went wrong, from Ivy's output."""
    missing = ", ".join(
        ":".join(filter(None, each)) for each in dict.fromkeys(_MISSING.findall(output))
    )
    if "PKIX" in output:
        return (
            "the certificate of a repository is not trusted by this Java: name a trust store that"
            " has its authority in `plugin.host.truststore`"
        )
    if refused := _UNREACHABLE.search(output):
        return (
            f"{missing or 'what is wanted'} is not in Ivy's cache, and {refused[1]} could not be"
            f" read ({refused[2]})"
        )
    if missing:
        return f"no repository has {missing}: look whether the name is as there"
    lines = list(filter(None, (each.strip(": \t") for each in output.splitlines())))
    return f"Ivy failed: {'; '.join(lines[-_SHOWN:])}"
