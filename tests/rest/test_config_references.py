from pathlib import Path

import pytest

from fairlead.runtime.config.references.resolving import (
    ReferenceBroken,
    is_reference,
    resolve,
    unknown_provider,
)
from fairlead_tests.no_plain_files import no_plain_files


def test_references_are_resolved_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST", "db")
    secrets = tmp_path / "db.properties"
    secrets.write_text("user=me\npass.word = s3:cret\n")
    config = {
        "url": f"//${{env:HOST}}/${{file:{secrets}:user}}",
        "p": f"${{file:{secrets}:pass.word}}",
    }
    assert resolve(config) == {"url": "//db/me", "p": "s3:cret"}


def test_what_a_reference_leads_to_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "${env:B}")
    assert resolve({"k": "${env:A}"}) == {"k": "${env:B}"}


@pytest.mark.parametrize(
    "reference", ["${env:NO_SUCH}", "${file:/no/such:key}", "${file::}", "${env:}"]
)
def test_a_reference_to_nothing_is_named(reference: str) -> None:
    with pytest.raises(ReferenceBroken) as caught:
        resolve({"password": f"x{reference}"})
    assert str(caught.value).startswith(f"password: {reference} ")


def test_a_file_without_the_key_is_named_without_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("user=me")
    with pytest.raises(ReferenceBroken, match="no such key in the file") as caught:
        resolve({"k": f"${{file:{file}:password}}"})
    assert "me" not in str(caught.value).replace(str(file), "").split()


@pytest.mark.parametrize(
    ("value", "holds"),
    [("${env:A}", True), ("${file:/f:k}", True), ("x${env:A}", False), ("${sealed:A}", False)],
)
def test_only_a_value_that_is_nothing_else_is_a_reference(value: str, holds: bool) -> None:
    assert is_reference(value) is holds


def test_a_properties_file_is_in_utf_8_as_kafka_reads_it_and_one_that_is_not_in_latin_1(
    tmp_path: Path,
) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_bytes("p=Grüße ≠ \\u00e9\n".encode())
    old.write_bytes(b"p=Gr\xfc\xdfe\n")
    config = {"new": f"${{file:{new}:p}}", "old": f"${{file:{old}:p}}"}
    assert resolve(config) == {"new": "Grüße ≠ é", "old": "Grüße"}


@pytest.mark.parametrize("kind", ["dir", "directory"])
def test_a_file_of_a_folder_is_a_value_as_it_is(tmp_path: Path, kind: str) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "password").write_bytes("sé=c:ret\n".encode())
    (tmp_path / "password").symlink_to("..data/password")  # as Kubernetes mounts a secret
    assert resolve({"k": f"${{{kind}:{tmp_path}:password}}"}) == {"k": "sé=c:ret\n"}


def test_what_is_no_plain_file_is_not_waited_for_and_what_is_endless_not_read(
    tmp_path: Path,
) -> None:
    for path, why in no_plain_files(tmp_path, 256 << 10).items():
        for reference in (f"${{file:{path}:k}}", f"${{dir:{path.parent}:{path.name}}}"):
            with pytest.raises(ReferenceBroken) as caught:
                resolve({"password": reference})
            assert str(caught.value) == f"password: {reference} cannot be read: {why}"


def test_the_references_of_a_config_read_so_much_together_and_each_file_once(
    tmp_path: Path,
) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"k=v{name}\n" + "#" * 100_000)
    config = {f"{name}{n}": f"${{file:{tmp_path / name}:k}}" for n in range(50) for name in "ab"}
    assert set(resolve(config).values()) == {"va", "vb"}
    with pytest.raises(ReferenceBroken, match="it has more than"):
        resolve({**config, "c": f"${{file:{tmp_path / 'c'}:k}}"})


@pytest.mark.parametrize("place", ["a/b", "..", ".", ""])
def test_a_file_of_a_folder_is_named_without_a_path(tmp_path: Path, place: str) -> None:
    with pytest.raises(ReferenceBroken, match=r"it must name a file in the folder"):
        resolve({"k": f"${{dir:{tmp_path}:{place}}}"})


def test_references_read_nothing_in_the_nodes_own_folder(tmp_path: Path) -> None:
    own = tmp_path / "data"
    (own / "run").mkdir(parents=True)
    (own / "run" / "key").write_text("k=secret")
    (tmp_path / "link").symlink_to(own)
    for path in (own / "run" / "key", tmp_path / "link" / "run" / "key"):
        for reference in (f"${{file:{path}:k}}", f"${{dir:{path.parent}:key}}"):
            with pytest.raises(ReferenceBroken, match="it lies in the node's own folder"):
                resolve({"k": reference}, own=str(own))
    (tmp_path / "data2").write_text("k=v")
    assert resolve({"k": f"${{file:{tmp_path / 'data2'}:k}}"}, own=str(own)) == {"k": "v"}
    assert resolve({"k": f"${{file:{own / 'run' / 'key'}:k}}"}) == {"k": "secret"}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("${vault:secret/db:password}", ("${vault:secret/db:password}", True)),
        ("x${aws-sm:a}y", ("${aws-sm:a}", False)),
        ("${env:A}${file:/f:k}${dir:/d:f}${directory:/d:f}", None),
        ("${topic}-${timestamp}", None),
        ("${:x}", None),
    ],
)
def test_a_reference_of_a_provider_that_is_not_there_is_found(
    value: str, found: tuple[str, bool] | None
) -> None:
    assert unknown_provider(value) == found
