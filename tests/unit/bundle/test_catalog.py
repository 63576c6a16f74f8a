"""The upgrade graph, the images and the channels of a catalog with several releases."""

import json
from typing import Any

import pytest
import yaml

from bundle.catalog import Packed, blobs, catalog
from bundle.errors import BundleError
from bundle.release import ANNOTATIONS, CSV_FILE, Release

NAME = "memcached-operator"


def packed(version: str, image: str = "", channels: tuple[str, ...] = ("stable",), **spec: Any) -> Packed:
    """A bundle with the least that a catalog reads. `spec`: more fields of its ClusterServiceVersion."""
    csv: dict[str, Any] = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{NAME}.v{version}", "annotations": {"olm.skipRange": f"<{version}"}},
        "spec": {
            "version": version,
            "description": "A bundle.",
            "icon": [{}],
            "install": {"spec": {}},
            "customresourcedefinitions": {"owned": []},
            **spec,
        },
    }
    labels = Release(version, "2030-01-02", channels).labels()
    return Packed({CSV_FILE: json.dumps(csv), ANNOTATIONS: json.dumps({"annotations": labels})}, image)


def images(text: str) -> list[str]:
    """The images of the bundles."""
    return [blob["image"] for blob in blobs(text) if blob["schema"] == "olm.bundle"]


def entries(text: str) -> dict[str, list[dict[str, Any]]]:
    """The entries of each channel."""
    return {blob["name"]: blob["entries"] for blob in blobs(text) if blob["schema"] == "olm.channel"}


def versions(text: str) -> dict[str, list[str]]:
    """The versions in each channel."""
    return {name: [entry["name"].partition(".v")[2] for entry in found] for name, found in entries(text).items()}


def test_new_release_is_added_and_the_old_one_is_kept() -> None:
    first = catalog([packed("0.1.0", "b:1")])
    old = f"{NAME}.v0.1.0"
    new = packed("0.2.0", "b:2", ("stable", "fast"), replaces=old, skips=[f"{NAME}.v0.1.1"])
    second = catalog([new], first)
    entry = {"name": f"{NAME}.v0.2.0", "replaces": old, "skips": [f"{NAME}.v0.1.1"], "skipRange": "<0.2.0"}
    assert entries(second) == {"fast": [entry], "stable": [{"name": old, "skipRange": "<0.1.0"}, entry]}
    assert images(second) == ["b:1", "b:2"]
    assert [blob for blob in blobs(second) if blob["name"] == old] == [
        blob for blob in blobs(first) if blob["name"] == old
    ]
    assert catalog([new], second) == second, "a second run changes nothing"


def test_regenerated_bundle_keeps_its_image() -> None:
    first = catalog([packed("0.1.0", "b:1")])
    assert catalog([packed("0.1.0")], first) == first
    with pytest.raises(BundleError, match=r"v0.1.0 has no image: name it as BUNDLE_IMG"):
        catalog([packed("0.1.0")])


@pytest.mark.parametrize("channels", [("stable",), ("fast",)])
def test_replaced_release_must_be_in_the_catalog(channels: tuple[str, ...]) -> None:
    first = catalog([packed("0.1.0", "b:1")])
    with pytest.raises(BundleError, match=rf"'{NAME}.v0.0.9' is not in the catalog: .* {NAME}.v0.2.0$"):
        catalog([packed("0.2.0", "b:2", channels, replaces=f"{NAME}.v0.0.9")], first)


def test_published_image_is_kept_with_keep_images() -> None:
    first, again = catalog([packed("0.1.0", "b:1")]), packed("0.1.0", "b:2")
    assert catalog([again], first, keep_images=True) == first
    assert images(catalog([again], first)) == ["b:2"]
    assert images(catalog([again], keep_images=True)) == ["b:2"]


def test_bundle_is_removed_from_channels_that_it_no_longer_lists() -> None:
    first = catalog([packed("0.1.0", "b:1", ("stable", "fast"))])
    second = catalog([packed("0.2.0", "b:2", ("stable",), replaces=f"{NAME}.v0.1.0")], first)
    moved = catalog([packed("0.2.0", "b:2", ("fast",), replaces=f"{NAME}.v0.1.0")], second)
    assert versions(moved) == {"fast": ["0.1.0", "0.2.0"], "stable": ["0.1.0"]}
    alone = catalog([packed("0.1.0", "b:1")])
    assert list(entries(catalog([packed("0.1.0", channels=("fast",))], alone))) == ["fast"], "an empty channel remains"


def test_other_documents_and_fields_of_a_catalog_do_not_change() -> None:
    first = catalog([packed("0.1.0", "b:1")]).replace("schema: olm.channel", "schema: olm.channel\nproperties: []")
    deprecated = {"schema": "olm.deprecations", "package": NAME, "entries": [{"message": "over"}]}
    second = catalog([packed("0.2.0", "b:2", replaces=f"{NAME}.v0.1.0")], f"{first}---\n{yaml.safe_dump(deprecated)}")
    assert blobs(second)[-1] == deprecated
    assert [blob["properties"] for blob in blobs(second) if blob["schema"] == "olm.channel"] == [[]]
