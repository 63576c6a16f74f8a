"""Both versions of Helm render the chart alike, accept it without a warning, and reject invalid values."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bundle.objects import parse
from bundle.release import PACKAGE, project_version
from chart.generate import FOLDER, archive
from project.generated import read_tree
from project.yaml_text import yaml_of
from support.charts import ROOT, VARIANTS, by_key
from support.helm import CHART, Helm, kubeconform, objects

INVALID: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "unknown name": ({"replicas": 3}, "replicas"),
    "unknown name in a section": ({"webhook": {"replica": 3}}, "replica"),
    "no pods": ({"controller": {"replicas": 0}}, "/controller/replicas"),
    "wrong type": ({"crds": {"enabled": "yes"}}, "/crds/enabled"),
    "unknown source": ({"certificates": {"source": "olm"}}, "/certificates/source"),
    "unknown field of Kubernetes": ({"webhook": {"tolerations": [{"keys": "a"}]}}, "keys"),
    "wrong quantity": ({"webhook": {"resources": {"limits": {"memory": "1 Gi"}}}}, "/webhook/resources/limits/memory"),
    "digest": ({"image": {"digest": "latest"}}, "/image/digest"),
    "no tag of memcached": ({"memcachedImage": {"tag": ""}}, "/memcachedImage/tag"),
    "one kind that cannot be alone": ({"kinds": ["appservice"]}, "/kinds"),
    "name of a namespace": ({"watchNamespaces": ["Team_A"]}, "/watchNamespaces/0"),
    "metrics for everyone": ({"networkPolicy": {"metricsFrom": []}}, "/networkPolicy/metricsFrom"),
    "label of the chart": ({"commonLabels": {"app.kubernetes.io/name": "a"}}, "app/kubernetes/io/name"),
}
"""Values that the schema rejects, and the part of them that the message names."""
PARENT = """\
apiVersion: v2
name: parent
version: 1.0.0
dependencies:
- name: memcached-operator
  version: "*"
  repository: file://{chart}
  condition: memcached-operator.enabled
"""


def test_chart_has_no_warning(program: Helm) -> None:
    for values in ({}, VARIANTS["everything"]):
        words = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        output = program.output("lint", "--strict", CHART, *words)
        assert ("[WARNING]" in output, "1 chart(s) linted, 0 chart(s) failed" in output) == (False, True)


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_versions_render_the_same_objects(helm_4: Helm, variant: str) -> None:
    """test_objects.py compares those of Helm 3 with config/."""
    assert by_key(helm_4.objects(VARIANTS[variant])) == by_key(objects(VARIANTS[variant]))


@pytest.mark.parametrize("case", INVALID)
def test_invalid_values_are_rejected_by_name(program: Helm, case: str) -> None:
    values, part = INVALID[case]
    done = program.template(values)
    assert done.returncode != 0
    # Some releases of Helm 3 separate the names of a path by dots.
    assert part in done.stderr.replace(".", "/"), done.stderr


@pytest.mark.parametrize(("version", "accepted"), [("1.29.14", False), ("1.30.0", True), ("1.35.4-gke.1", True)])
def test_version_of_kubernetes(program: Helm, version: str, accepted: bool) -> None:
    assert (program.template({}, f"--kube-version={version}").returncode == 0) == accepted


@pytest.mark.parametrize("variant", VARIANTS)
def test_objects_have_only_fields_of_kubernetes(variant: str, schemas: Path) -> None:
    assert kubeconform(schemas, yaml_of(*objects(VARIANTS[variant]))) == ""


def test_schemas_find_unknown_fields(schemas: Path) -> None:
    """Otherwise the test above would prove nothing."""
    (found, *_) = [each for each in objects({}) if each["kind"] == "Deployment"]
    wrong = {**found, "spec": {**found["spec"], "replica": 1}}
    assert "replica" in kubeconform(schemas, yaml_of(wrong))


def test_package_is_that_of_helm(program: Helm, tmp_path: Path) -> None:
    own = tmp_path / "own.tgz"
    own.write_bytes(archive(read_tree(ROOT / FOLDER, ".")))
    program.output("package", CHART, f"--destination={tmp_path}")
    theirs = tmp_path / f"{PACKAGE}-{project_version()}.tgz"
    for command in ("chart", "values", "readme"):
        assert program.output("show", command, own) == program.output("show", command, theirs)
    assert program.output("template", "a", own) == program.output("template", "a", theirs)


def test_chart_can_be_part_of_another_one(program: Helm, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / "Chart.yaml").write_text(PARENT.format(chart=CHART))
    program.output("dependency", "update", parent)
    render = ("template", "a", parent, "--set=global.team=a")
    assert len(parse(program.output(*render, "--set=memcached-operator.enabled=true"), "parent")) == len(objects({}))
    assert program.output(*render, "--set=memcached-operator.enabled=false").strip() == ""
