"""Runs the validators of OLM's tools on a bundle and a catalog."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster.console.progress import Progress
from cluster.console.report import aligned
from cluster.errors import ClusterError
from cluster.public.programs import Family
from olm.findings import Finding, count, outcome
from olm.programs import OPM, RENDERER, SDK, VALIDATION, VERIFY, programs

SECONDS = 120
KUBERNETES = "1.35"
"""The Kubernetes version whose removed APIs are reported: that of the local cluster (cluster.versions)."""
IMAGE_TEMPLATE = "localhost/{{.Package}}-bundle:v{{.Version}}"
"""opm requires an image name for a bundle that it renders from a directory; nothing is pulled."""
INSTALL_NAMESPACE = "memcached-operator-system"


@dataclass(frozen=True)
class Validator:
    """A line of the report and its command, whose first word is a program of `family`."""

    title: str
    family: Family
    words: tuple[str, ...]


DEPRECATED = 'The "operatorhub" validator is deprecated; '
"""A part of a warning of the validator operatorhub about itself. Community catalogs still run it, and its successor."""


def validators(bundle: Path, catalog: Path | None) -> list[Validator]:
    """All validators, in the order of the report."""
    sdk = ("operator-sdk", "bundle", "validate", str(bundle), "-o", "json-alpha1")
    suite = ("--select-optional", "suite=operatorframework", f"--optional-values=k8s-version={KUBERNETES}")
    hub = ("--select-optional", "name=operatorhub", f"--optional-values=k8s-version={KUBERNETES}")
    # Without --operatorhub_validate, which is the validator operatorhub of operator-sdk.
    verify = ("operator-verify", "manifests", str(bundle), "--object_validate")
    found = [
        Validator("operator-sdk bundle validate", SDK, sdk),
        Validator(f"operator-sdk, suite operatorframework, {KUBERNETES}", SDK, (*sdk, *suite)),
        Validator(f"operator-sdk, validator operatorhub, {KUBERNETES}", SDK, (*sdk, *hub)),
        Validator("operator-verify, objects", VERIFY, verify),
        Validator(
            "opm render, the bundle",
            OPM,
            ("opm", "render", str(bundle), "-o", "json", "--alpha-image-ref-template", IMAGE_TEMPLATE),
        ),
        Validator("OLM v1's renderer", RENDERER, ("render-v1", str(bundle), INSTALL_NAMESPACE)),
    ]
    if catalog:
        found += [
            Validator("opm validate, the catalog", OPM, ("opm", "validate", str(catalog))),
            Validator("opm render, the catalog", OPM, ("opm", "render", str(catalog), "-o", "json")),
        ]
    return found


def run_validator(validator: Validator, folder: Path) -> list[Finding]:
    """Run one validator. The findings are in its output: operator-verify always exits with 0."""
    program, *words = validator.words
    try:
        done = subprocess.run(
            [folder / program, *words],
            capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [Finding("error", f"{program} did not finish within {SECONDS} s")]
    return [each for each in outcome(done.stdout, done.stderr, done.returncode) if not is_known(each)]


def is_known(finding: Finding) -> bool:
    """True for a warning that is not about this bundle: see DEPRECATED."""
    return finding.level == "warning" and DEPRECATED in finding.text


def validate(bundle: Path, catalog: Path | None, progress: Progress | None = None) -> tuple[str, bool]:
    """Run all validators; returns the report, and whether there are no findings.

    Raises ClusterError if a directory does not exist.
    """
    for directory in filter(None, (bundle, catalog)):
        if not directory.is_dir():
            raise ClusterError(f"there is no directory {directory}: generate it with `make bundle` or `make catalog`")
    every = validators(bundle, catalog)
    folder = programs(VALIDATION, progress)
    results = [(each.title, run_validator(each, folder)) for each in every]
    lines = [aligned([(title, count(found)) for title, found in results])]
    lines += [f"{each.level}: {title}: {each.text}" for title, found in results for each in found]
    return "\n".join(lines), not any(found for _, found in results)


def render_v1(bundle: Path, namespace: str, watched: list[str]) -> tuple[int, str, str]:
    """Exit code, objects and error output of OLM v1's renderer."""
    program = programs((RENDERER,)) / "render-v1"
    done = subprocess.run([program, bundle, namespace, *watched], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
