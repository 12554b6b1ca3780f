from pathlib import Path

import pytest

from fairlead.runtime.config.secrets import ReferenceBroken, is_reference, resolve


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
