"""The generator of the chart: nodes and their text, variants, changes, archive, errors."""

import gzip
import io
import tarfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bundle.errors import BundleError
from bundle.objects import Object, mapping
from bundle.release import Release, project_version
from chart.__main__ import main
from chart.archive import archive
from chart.changes import changes
from chart.generate import chart_files
from chart.objects.documents import templates
from chart.objects.nodes import Block, Expression, If, Included, More, text_of
from chart.objects.variants import merged
from chart.sources import Sources
from chart.sources import rendered as rendered_sources
from support.go_templates import Templates
from unit.config.rendered import kubectl

TRUE, FALSE = "$.yes", "$.no"
ROOT: Object = {"yes": True, "no": False, "text": "a: b", "map": {"x": 1, "y": [2]}, "list": ["p"], "none": []}


@pytest.fixture(scope="module")
def sources() -> Sources:
    """What kustomize renders."""
    if not kubectl():
        pytest.skip("kubectl is missing: run `make cluster` to build it")
    return rendered_sources()


def rendered(value: Object, root: Object = ROOT) -> Any:
    """The value that the text of nodes has as a template."""
    return mapping(Templates({"a": text_of(value)}).render("a", root), "text")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"a": [{"b": "c"}, ["d"]], "e": {}, "f": []}, {"a": [{"b": "c"}, ["d"]], "e": {}, "f": []}),
        ({"a": Expression("$.text | quote")}, {"a": "a: b"}),
        ({"a": [Expression("$.text | quote"), "b"]}, {"a": ["a: b", "b"]}),
        ({"a": {"b": Block("toYaml $.map")}}, {"a": {"b": {"x": 1, "y": [2]}}}),
        ({"a": {"b": 1, More("$.map"): None}}, {"a": {"b": 1, "x": 1, "y": [2]}}),
        ({"a": {"b": 1, More("$.none"): None}}, {"a": {"b": 1}}),
        ({"a": ["b", More("$.list")]}, {"a": ["b", "p"]}),
        ({"a": If(TRUE, "b"), "c": If(FALSE, "d")}, {"a": "b"}),
        ({"a": If(FALSE, "b", {"c": If(TRUE, [1])})}, {"a": {"c": [1]}}),
        ({"a": [If(TRUE, {"b": 1, "c": 2}), If(FALSE, "d", "e"), "f"]}, {"a": [{"b": 1, "c": 2}, "e", "f"]}),
        ({"a": [{"b": "c", "d": Expression("$.text | quote")}]}, {"a": [{"b": "c", "d": "a: b"}]}),
        ({"a": "{{ not an action }}", "b": "{{"}, {"a": "{{ not an action }}", "b": "{{"}),
        ({"a": "first\n\n  second {{\n"}, {"a": "first\n\n  second {{\n"}),
    ],
)
def test_text_of_nodes_renders_to_their_values(value: Object, wanted: Object) -> None:
    assert rendered(value) == wanted
    assert rendered({"outer": [value]}) == {"outer": [wanted]}


def test_included_entries_are_indented() -> None:
    text = '{{ define "n" }}x: 1\ny: 2{{ end }}' + text_of({"a": {"b": {"c": 0, Included("n"): None}}})
    assert mapping(Templates({"a": text}).render("a", {}), "text") == {"a": {"b": {"c": 0, "x": 1, "y": 2}}}


@pytest.mark.parametrize("namespace", ["caches", "123", "true"])
def test_namespace_of_config_becomes_that_of_the_release(namespace: str) -> None:
    value = {"namespace": "memcached-operator-system", "dnsNames": ["service.memcached-operator-system.svc"]}
    found = rendered(value, {"Release": {"Namespace": namespace}})
    assert found == {"namespace": namespace, "dnsNames": [f"service.{namespace}.svc"]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "d": 3}}),
        ({"a": ["x", "y"]}, {"a": ["y", "z"]}),
        ({"a": ["x"]}, {"a": ["x", "y", "z"]}),
        ({"a": [{"n": 1, "args": ["x", "y"]}]}, {"a": [{"n": 1, "args": ["x"]}]}),
        ({"a": [{"n": 1}, {"n": 2}]}, {"a": [{"n": 2}]}),
        ({"a": "text", "z": 0}, {"a": {"b": 1}, "z": 0}),
    ],
)
def test_merged_variants_render_to_each_of_them(first: Object, second: Object) -> None:
    value = merged(first, second, "$.first")
    assert [rendered(value, {"first": each}) for each in (True, False)] == [first, second]


CHANGELOG = """\
## [Unreleased]

### Added

- Later.

## [1.2.0] - 2030-01-02

### Added

#### Caches

- **Fields:** a `field`, see [the page](docs/a.md), in
  two lines.

#### Pages

- Another.

### Security

- A fix.

[Unreleased]: https://example.com
"""


def test_changes_of_a_version_are_plain_text() -> None:
    assert changes(CHANGELOG, "1.2.0") == [
        {"kind": "added", "description": "Fields: a `field`, see the page, in two lines."},
        {"kind": "added", "description": "Another."},
        {"kind": "security", "description": "A fix."},
    ]
    with pytest.raises(BundleError, match=r"CHANGELOG.md has no section for 1.3.0"):
        changes(CHANGELOG, "1.3.0")


def test_archive_has_the_same_bytes_every_time_and_the_metadata_first() -> None:
    files = {"values.yaml": "a: 1\n", "Chart.yaml": "name: x\n", "templates/a.yaml": "é\n"}
    found = archive(files)
    assert found == archive(dict(reversed(files.items())))
    assert found[4:8] == bytes(4), "the header of gzip must have no time"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(found))) as tar:
        names = tar.getnames()
        content = tar.extractfile("memcached-operator/templates/a.yaml")
        assert content is not None
        assert content.read().decode() == "é\n"
    assert names == [f"memcached-operator/{name}" for name in ("Chart.yaml", "templates/a.yaml", "values.yaml")]


def test_package_is_named_by_its_version(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["package", f"--output={tmp_path}"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == [f"memcached-operator-{project_version()}.tgz"]


def test_images_of_a_release_are_the_defaults(sources: Sources) -> None:
    digest = f"sha256:{'a' * 64}"
    release = Release(
        "0.1.0", "2030-01-02", image=f"r.example.com/op@{digest}", agent_image="r.example.com:5000/agent:2"
    )
    values = mapping(chart_files(sources, release)["values.yaml"], "values.yaml")
    assert values["image"].items() >= {"repository": "r.example.com/op", "tag": "", "digest": digest}.items()
    assert values["agentImage"].items() >= {"repository": "r.example.com:5000/agent", "tag": "2", "digest": ""}.items()


def namespaced(sources: Sources, objects: Iterable[Object]) -> Sources:
    """The sources with other objects for the watched namespaces."""
    known = [each for each in sources.namespaced if each["kind"] != "RoleBinding"]
    return replace(sources, namespaced=[*known, *objects])


def test_objects_without_a_place_are_errors(sources: Sources) -> None:
    job: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate", "labels": {}}}
    with pytest.raises(BundleError, match=r"Job migrate has no file in the chart"):
        templates(replace(sources, network=[*sources.network, job]))
    (first, second) = [each for each in sources.namespaced if each["metadata"].get("namespace", "").startswith("team-")]
    wrong: list[list[Object]] = [[], [first, {**second, "subjects": []}]]
    for objects in wrong:
        with pytest.raises(BundleError, match=r"must have one object, the same in each watched namespace"):
            templates(namespaced(sources, objects))
