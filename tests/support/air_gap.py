"""docs/air-gap.md as code: its commands, and the objects that it installs from a mirror."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from bundle.__main__ import main as bundle_command
from bundle.images import related_variables
from memcached_api.images import DEFAULT_IMAGE, Images
from memcached_api.memcached.types import decode_spec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.deployment import deployment
from support import helm
from support.code_blocks import starting

ROOT = Path(__file__).parents[2]
HOST = "registry.example.com"
"""The mirror in the examples of the page."""
MEMCACHED = DEFAULT_IMAGE.rpartition("/")[2]


def listed_images(*of_olm: str) -> list[str]:
    """What `make images-list` prints, with these images of OLM."""
    return CliRunner().invoke(bundle_command, ["images", *of_olm]).output.split()


def mirrored() -> set[str]:
    """The images that the commands of the page write into the mirror, without those of OLM."""
    return {f"{HOST}/{image.rpartition('/')[2]}" for image in listed_images()}


PAGE = "air-gap.md"


def overlay(directory: Path) -> None:
    """Write the page's overlay and what it is based on into a directory."""
    (directory / "kustomization.yaml").write_text(starting(PAGE, "# kustomization.yaml\n"))
    shutil.copytree(ROOT / "config", directory / "memcached-operator/config")


def of_chart() -> list[Object]:
    """The objects of the chart with the values of the page."""
    values = yaml.safe_load(starting(PAGE, "# values.yaml\n"))
    return helm.objects(values)


def parsed(text: str) -> list[Object]:
    """The objects of YAML documents."""
    return list(yaml.safe_load_all(text))


def cache() -> Object:
    """The Deployment of the Memcached on the page, with the default image of an operator from the mirror."""
    cr: Object = yaml.safe_load(starting(PAGE, "apiVersion: cache.example.com/v1\n"))
    cr["metadata"]["uid"] = "uid"
    return deployment(cr, decode_spec(cr), Images(f"{HOST}/{MEMCACHED}"))


def images(objects: Iterable[Object]) -> set[str]:
    """The images that the Deployments of an installation run, and those that they set for caches."""
    containers = list(_containers(objects))
    return {each["image"] for each in containers} | {
        image for each in containers for image in related_variables(each).values()
    }


def _containers(objects: Iterable[Object]) -> Iterator[dict[str, Any]]:
    for each in objects:
        if each["kind"] == "Deployment":
            yield from each["spec"]["template"]["spec"]["containers"]


def pull_secrets(objects: Iterable[Object]) -> list[list[str]]:
    """The names of the pull secrets of each Deployment's pods: their own, or those of their ServiceAccount."""
    listed = list(objects)
    accounts = {each["metadata"]["name"]: each for each in listed if each["kind"] == "ServiceAccount"}
    pods = [each["spec"]["template"]["spec"] for each in listed if each["kind"] == "Deployment"]
    return [
        [secret["name"] for secret in pod.get("imagePullSecrets") or account.get("imagePullSecrets", [])]
        for pod in pods
        for account in [accounts.get(pod.get("serviceAccountName", ""), {})]
    ]
