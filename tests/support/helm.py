"""Helm 3, Helm 4 and kubeconform, built when they are first needed, and Kubernetes' schemas for kubeconform."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bundle.objects import Object, parse
from cluster.public.programs import (
    GO_ENV,
    HELM_FAMILIES,
    KUBECONFORM_FAMILY,
    KUBERNETES_FAMILY,
    Family,
    directory,
    ensure_built,
    ensure_go,
)
from cluster.shell import run
from memcached_api.values import is_array, is_object
from support import programs
from support.charts import NAMESPACE, RELEASE, ROOT

CHART = ROOT / "charts/memcached-operator"
NO_SCHEMA = ("Certificate", "Issuer", "PrometheusRule", "ServiceMonitor")
"""Kinds that are not Kubernetes' own."""
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
"""The document has only strings for it, and the API server also takes numbers, such as `cpu: 1`."""


@dataclass(frozen=True)
class Helm:
    """One of the two programs. For users, its directory has a link with the name `helm`."""

    name: str
    program: Path

    def __str__(self) -> str:
        return self.name

    @property
    def folder(self) -> Path:
        """The directory of the program."""
        return self.program.parent

    def call(self, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run helm; the environment has no cluster."""
        command = [str(self.program), *map(str, words)]
        return programs.run(command, stdin=stdin)

    def output(self, *words: str | Path) -> str:
        """Run helm and return its output; an error fails the test."""
        done = self.call(*words)
        assert done.returncode == 0, f"{self.name} {' '.join(map(str, words))}: {done.stdout}{done.stderr}"
        return done.stdout

    def template(
        self, values: Mapping[str, Any], *more: str, namespace: str = NAMESPACE
    ) -> subprocess.CompletedProcess[str]:
        """Render the chart with values."""
        words = ("template", RELEASE, CHART, f"--namespace={namespace}", "--values=-", *more)
        return self.call(*words, stdin=json.dumps(values))

    def objects(self, values: Mapping[str, Any], namespace: str = NAMESPACE) -> list[Object]:
        """The objects of the chart with values; an error fails the test."""
        done = self.template(values, namespace=namespace)
        assert done.returncode == 0, f"{self.name}: {done.stderr}"
        return [each for text in done.stdout.split("\n---\n") for each in _parsed(text)]


@cache
def _parsed(text: str) -> tuple[Object, ...]:
    """The objects of a document. Most values change few of them."""
    return tuple(parse(text, "the chart"))


def objects(values: Mapping[str, Any], namespace: str = NAMESPACE) -> list[Object]:
    """The objects of the chart, rendered by Helm 3, which is built faster than Helm 4."""
    return Helm("helm-3", _built("helm-3")).objects(values, namespace)


def _built(name: str) -> Path:
    family = HELM_FAMILIES[name]
    ensure_built(family, [name])
    return directory(family) / name


def helm(name: str, folder: Path) -> Helm:
    """`helm-3` or `helm-4`. `folder` gets a link to it with the name that users know."""
    (folder / "helm").symlink_to(_built(name))
    return Helm(name, folder / "helm")


def kubeconform(schemas: Path, text: str) -> str:
    """The complaints of kubeconform about a stream of objects; empty if there are none."""
    ensure_built(KUBECONFORM_FAMILY, ["kubeconform"])
    location = f"{schemas}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    program = directory(KUBECONFORM_FAMILY) / "kubeconform"
    command = [program, "-strict", "-schema-location", location, "-skip", ",".join(NO_SCHEMA), "-"]
    return programs.run(command, stdin=text).stdout


def write_schemas(folder: Path) -> None:
    """Write a JSON schema for each kind of Kubernetes, from the OpenAPI document in its Go module."""
    source = sources(KUBERNETES_FAMILY, "k8s.io/kubernetes")
    definitions = json.loads((source / "api/openapi-spec/swagger.json").read_text(encoding="utf-8"))["definitions"]
    strict = _strict(definitions) | {QUANTITY: {"type": ["string", "number"]}}
    (folder / "definitions.json").write_text(json.dumps({"definitions": strict}))
    for name, definition in definitions.items():
        for file in _files(definition.get("x-kubernetes-group-version-kind", [])):
            (folder / file).write_text(json.dumps({"$ref": f"definitions.json#/definitions/{name}"}))


def sources(family: Family, module: str) -> Path:
    """The directory of a Go module that a family is built from, with files such as charts and schemas."""
    words = [ensure_go(), "mod", "download", "-json", module]
    return Path(json.loads(run(words, env=GO_ENV, cwd=family.module))["Dir"])


def _files(kinds: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The names by which kubeconform looks up a kind: its group up to the first dot, and the version."""
    for each in kinds:
        group = each["group"].partition(".")[0]
        yield f"{'-'.join(filter(None, (each['kind'].lower(), group, each['version'])))}.json"


def _strict(value: Any) -> Any:
    """A part of the document as JSON schema: no unknown fields, and integers or strings where Kubernetes takes both."""
    if is_array(value):
        return [_strict(each) for each in value]
    if not is_object(value):
        return value
    if value.get("format") == "int-or-string":
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    found = {name: _strict(each) for name, each in value.items()}
    is_struct = found.get("type") == "object" and "properties" in found
    return {"additionalProperties": False, **found} if is_struct else found
