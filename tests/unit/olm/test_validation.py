"""The output of the validators is parsed: their formats differ, and one of them always exits 0."""

from pathlib import Path

import pytest

from cluster.errors import ClusterError
from olm import cli, validation
from olm.findings import Finding, count, from_log, outcome
from olm.validation import validate

PASSED = '{"passed": true, "outputs": null}'
FAILED = '{"passed": false, "outputs": [{"type": "warning", "message": "w"}, {"type": "error", "message": "e"}]}'
INFO = 'time="2026-01-01T00:00:00Z" level=info msg="All validation tests have completed successfully"\n'
WARNING = 'time="2026-01-01T00:00:00Z" level=warning msg="Warning: Value : no \\"example\\""\n'
ERROR = "time=2026 level=error msg=short\n"


@pytest.mark.parametrize(
    ("output", "errors", "code", "found"),
    [
        (PASSED, INFO, 0, []),
        (FAILED, INFO, 1, [Finding("warning", "w"), Finding("error", "e")]),
        ("", "", 0, []),
        ("", WARNING + ERROR, 0, [Finding("warning", 'Warning: Value : no "example"'), Finding("error", "short")]),
        ("", "level=fatal msg=failed", 1, [Finding("error", "failed")]),
        ("", "plain text\n", 1, [Finding("error", "exit code 1: plain text")]),
        ("", "", 2, [Finding("error", "exit code 2: no output")]),
        (PASSED, "", 1, [Finding("error", "exit code 1: no output")]),
        ('{"schema": "olm.bundle"}', "", 0, []),
        ('{"schema": "a"}{"schema": "b"}', "", 0, []),
        ("apiVersion: v1\nkind: Service\n", "", 0, []),
    ],
)
def test_outcome(output: str, errors: str, code: int, found: list[Finding]) -> None:
    assert outcome(output, errors, code) == found


def test_count() -> None:
    assert count(from_log(WARNING + ERROR + WARNING)) == "1 errors, 2 warnings"


def test_missing_bundle(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"there is no directory .*none: generate it with `make bundle`"):
        validate(tmp_path / "none", None)


def test_external_cluster_is_not_modified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    assert cli.main(["up"]) == 1
    assert "is not a local cluster of this project" in capsys.readouterr().err


KNOWN = {
    "the removed versions of an API that the controller does not use": ("warning", validation.UNVERSIONED, True),
    "a validator's warning about itself": ("warning", validation.DEPRECATED, True),
    "another warning": ("warning", "Migrate the API(s) for cronjobs: ([", False),
    "an error": ("error", validation.UNVERSIONED, False),
}


@pytest.mark.parametrize(("level", "text", "expected"), KNOWN.values(), ids=KNOWN.keys())
def test_known_warning(level: str, text: str, expected: bool) -> None:
    assert validation.is_known(Finding(level, f"Value x: {text}rules])")) is expected
