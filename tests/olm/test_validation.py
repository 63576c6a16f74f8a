"""OLM's own validators and the API server check the bundle and the catalog, so tools/bundle does not."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from bundle.catalog import CATALOG
from bundle.release import ANNOTATIONS, CSV_FILE, MANIFESTS
from olm.findings import Finding
from olm.programs import VALIDATION, programs
from olm.validation import run_validator, validate, validators
from support import olm
from support.kube import kubectl

pytestmark = pytest.mark.modes

VALIDATORS = 7
CRD = f"{MANIFESTS}/cache.example.com_memcacheds.yaml"
BUDGET = f"{MANIFESTS}/memcached-operator-webhook_policy_v1_poddisruptionbudget.yaml"
HOOK = "generateName: mappservice.app.example.com\n"
UNKNOWN_ENTRY = "entries:\n  - name: memcached-operator.v999.0.0\n"
SDK = "operator-sdk bundle validate"
SUITE = "operator-sdk, suite operatorframework"
VERIFY = "operator-verify, objects"
OPM = "opm validate, the catalog"
V1 = "OLM v1's renderer"


class Case(NamedTuple):
    """A pattern in a file and its replacement, the validator that must report it, and a part of the message."""

    path: str
    pattern: str
    replacement: str
    validator: str
    message: str


CASES = [
    Case(ANNOTATIONS, r"registry\+v1", "helm", SDK, 'instead of "helm"'),
    Case(ANNOTATIONS, r"(channels\.v1:) .*", r"\1 ''", SDK, "channels.v1"),
    Case(CRD, r"^", "# A comment.\n---\n", SDK, "not found in bundle"),
    Case(CSV_FILE, r"(minKubeVersion:) .*", r'\1 "1.30"', SDK, "MinKubeVersion has an invalid value"),
    Case(CSV_FILE, r'"apiVersion": "app\.example\.com/v1"', '"apiVersion": "v1"', SDK, "must have a provided API"),
    Case(CSV_FILE, r"installModes:\n(  +.*\n)+", "installModes: []\n", SDK, "install modes not found"),
    Case(CSV_FILE, r"(capabilities:) Seamless.*", r"\1 Full", SUITE, "not a valid capabilities level"),
    Case(CSV_FILE, r"(categories:) Database", r"\1 Cache", SUITE, "not in the set of standard categories"),
    Case(CSV_FILE, r"email: .*", "email: invalid", SUITE, "email"),
    Case(CSV_FILE, r"  provider:\n(    .*\n)+", "", SUITE, "Provider.Name not specified"),
    Case(BUDGET, r"maxUnavailable: 1", "maxUnavailable: 0", VERIFY, "maxUnavailable"),
    Case(CSV_FILE, rf"({HOOK} +deploymentName:) .*", r"\1 webhook", V1, "references non-existent deployment"),
    Case(
        CSV_FILE,
        r"(webhookdefinitions:\n(?:.*\n)*?) +- app\.example\.com",
        r"\1            - '*'",
        V1,
        "cannot reference API group",
    ),
    Case(CSV_FILE, r"(generateName: )vmemcached\.cache", r"\1vappservice.app", V1, "duplicate webhook"),
    Case(CATALOG, r"(defaultChannel:) stable", r"\1 fast", OPM, "channel must contain at least one bundle"),
    Case(CATALOG, r"entries:\n", UNKNOWN_ENTRY, OPM, "no olm.bundle blobs found"),
    Case(CATALOG, r"\nimage: .*", "", OPM, "bundle image must be set"),
    Case(CATALOG, r"(entries:\n  - name: .*)", r'\1\n    skipRange: "< 0.2"', OPM, "invalid skipRange"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A directory with a copy of bundle/ and catalog/."""
    for name in ("bundle", "catalog"):
        shutil.copytree(olm.ROOT / name, tmp_path / name)
    return tmp_path


def replace(path: Path, pattern: str, replacement: str) -> None:
    """Replace the first match of a pattern in a file; it must match."""
    text, count = re.subn(pattern, replacement, path.read_text(), count=1)
    assert count, f"{pattern!r} matches nothing in {path}"
    path.write_text(text)


def test_bundle_and_catalog_pass_every_validator() -> None:
    report = olm.make("bundle-validate").splitlines()
    assert len(report) == VALIDATORS
    assert all(line.endswith("0 errors, 0 warnings") for line in report), report


def test_every_validator_reports_a_broken_bundle_or_catalog(copy: Path) -> None:
    (copy / CRD).unlink()
    with (copy / CATALOG).open("a") as file:
        file.write("---\nname: without-a-schema\n")
    report, clean = validate(copy / "bundle", copy / "catalog")
    assert not clean
    lines = report.splitlines()[:VALIDATORS]
    assert all(line.endswith("errors, 0 warnings") and " 0 errors" not in line for line in lines), report


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.validator}: {case.message}")
def test_the_validator_reports_the_error(case: Case, copy: Path) -> None:
    replace(copy / case.path, case.pattern, case.replacement)
    found = findings(case.validator, copy)
    assert any(each.level == "error" and case.message in each.text for each in found), found


def findings(title: str, place: Path) -> list[Finding]:
    """What one validator reports."""
    (validator,) = [each for each in validators(place / "bundle", place / "catalog") if each.title.startswith(title)]
    return run_validator(validator, programs(VALIDATION))


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"      sideEffects: None\n", "", "sideEffects: Required value"),
        (r"type: MutatingAdmissionWebhook", "type: Mutating", "type: Unsupported value"),
        (rf"( +){HOOK}", r"\g<0>\1namespaceSelector: {}\n", "unknown field"),
    ],
)
def test_the_api_server_denies_an_invalid_webhook_definition(
    pattern: str, replacement: str, message: str, copy: Path, namespace: str
) -> None:
    replace(copy / CSV_FILE, r"\n  namespace: placeholder", f"\n  namespace: {namespace}")
    create = ("create", "--dry-run=server", "--validate=strict", "-f", str(copy / CSV_FILE))
    kubectl(*create)
    replace(copy / CSV_FILE, pattern, replacement)
    assert message in kubectl(*create, check=False).stderr
