"""What the checks look at, and what they find."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from bundle.catalog import CATALOG, Packed, blobs
from bundle.objects import Object, containers, parse
from bundle.release import CSV_FILE, DOCKERFILE, MANIFESTS
from memcached_api.field_errors import format_value
from memcached_api.values import is_array, is_object

MAX_NAME_LENGTH: Final = 63
"""Characters of a release's and a webhook's name: OLM writes both into labels."""


class Finding(NamedTuple):
    """One thing that is wrong: where, with which value, and what to do about it."""

    file: str
    field: str
    value: Any
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.field}: {_shown(self.value)}: {self.remedy}"


def _shown(value: Any) -> str:
    """As JSON, cut; objects and lists too: nobody else tells what is in them."""
    scalar = not is_object(value) and not is_array(value)
    return format_value(value) if scalar else format_value(json.dumps(value, default=str))[1:-1].replace('\\"', '"')


def of_csv(field: str, value: Any, remedy: str) -> Finding:
    """A fault of the ClusterServiceVersion."""
    return Finding(CSV_FILE, field, value, remedy)


@dataclass(frozen=True)
class Subject:
    """A bundle with its catalogue (`files`: path as in the project → text), and the tree it is made from (`config`).

    Every property raises BundleError, naming the file, where there is nothing to look at.
    """

    files: Mapping[str, str]
    config: Mapping[str, str]

    @cached_property
    def packed(self) -> Packed:
        return Packed(self.files)

    @cached_property
    def csv(self) -> Object:
        return self.packed.csv()

    @property
    def spec(self) -> Object:
        return self.csv["spec"]

    @property
    def annotations(self) -> dict[str, str]:
        """Those of the ClusterServiceVersion."""
        return self.csv["metadata"].get("annotations", {})

    @cached_property
    def manifests(self) -> dict[str, list[Object]]:
        """The objects of each file in bundle/manifests."""
        places = sorted(path for path in self.files if path.startswith(f"{MANIFESTS}/"))
        return {place: parse(self.files[place], place) for place in places}

    def of(self, kind: str) -> dict[str, Object]:
        """The objects of a kind, by file."""
        return {place: each for place, found in self.manifests.items() for each in found if each["kind"] == kind}

    @cached_property
    def deployments(self) -> list[Object]:
        """Those of the ClusterServiceVersion: `name`, `label` and `spec`."""
        return self.spec["install"]["spec"].get("deployments", [])

    @cached_property
    def containers(self) -> list[Object]:
        return list(containers(self.deployments))

    @cached_property
    def owned(self) -> list[dict[str, Any]]:
        return self.spec.get("customresourcedefinitions", {}).get("owned", [])

    @cached_property
    def webhooks(self) -> list[dict[str, Any]]:
        return self.spec.get("webhookdefinitions", [])

    @cached_property
    def examples(self) -> Any:
        """What alm-examples hold; None where they are no JSON."""
        try:
            return json.loads(self.annotations.get("alm-examples", ""))
        except ValueError:
            return None

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of bundle.Dockerfile."""
        lines = [line.split(maxsplit=1) for line in self.files.get(DOCKERFILE, "").splitlines()]
        pairs = [words[1].partition("=") for words in lines if len(words) == 2 and words[0] == "LABEL"]
        return {key: value for key, _, value in pairs}

    @cached_property
    def catalog(self) -> list[dict[str, Any]]:
        """The documents of catalog/."""
        return blobs(self.files.get(CATALOG, ""))

    def configured(self, place: str) -> list[Object]:
        """The objects of a file in config/."""
        return parse(self.config[place], place)
