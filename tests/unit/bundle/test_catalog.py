"""Catalogs of one release, of several releases, and with inline manifests."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle.catalog import CATALOG, Packed, blobs, catalog
from bundle.errors import BundleError
from bundle.files import write
from bundle.release import project_version
from unit.bundle.test_generate import generated, release_of, run
from unit.bundle.tree import GOOD

NAME = "memcached-operator"
IMAGE = "registry.example.com/bundle:v{}"


def packed(version: str, image: str = "", **words: Any) -> Packed:
    return Packed(generated(release_of(version, **words)), image)


def by_schema(text: str, schema: str) -> list[dict[str, Any]]:
    return [blob for blob in blobs(text) if blob["schema"] == schema]


def entries(text: str) -> dict[str, list[dict[str, Any]]]:
    return {blob["name"]: blob["entries"] for blob in by_schema(text, "olm.channel")}


def test_catalog_in_the_tree_is_up_to_date() -> None:
    assert catalog([Packed(GOOD)], GOOD[CATALOG]) == GOOD[CATALOG]


def test_new_release_is_added_and_the_old_one_is_kept() -> None:
    first = catalog([packed("0.1.0", IMAGE.format("0.1.0"))])
    new = packed(
        "0.2.0", IMAGE.format("0.2.0"), channels=("stable", "fast"), replaces=f"{NAME}.v0.1.0", skip_range="<0.2.0"
    )
    second = catalog([new], first)
    entry = {"name": f"{NAME}.v0.2.0", "replaces": f"{NAME}.v0.1.0", "skipRange": "<0.2.0"}
    assert entries(second) == {"fast": [entry], "stable": [{"name": f"{NAME}.v0.1.0"}, entry]}
    assert by_schema(second, "olm.bundle")[0] == by_schema(first, "olm.bundle")[0]
    assert [blob["image"] for blob in by_schema(second, "olm.bundle")] == [IMAGE.format(v) for v in ("0.1.0", "0.2.0")]
    assert catalog([new], second) == second, "a second run changes nothing"


def test_regenerated_bundle_keeps_its_image() -> None:
    first = catalog([packed("0.1.0", IMAGE.format("0.1.0"))])
    assert catalog([packed("0.1.0")], first) == first
    with pytest.raises(BundleError, match=r"v0.1.0 has no image: name it as BUNDLE_IMG"):
        catalog([packed("0.1.0")])


@pytest.mark.parametrize("channels", [("stable",), ("fast",)])
def test_replaced_release_must_be_in_the_catalog(channels: tuple[str, ...]) -> None:
    first = catalog([packed("0.1.0", "b:1")])
    with pytest.raises(BundleError, match=rf"'{NAME}.v0.0.9' is not in the catalog: .* {NAME}.v0.2.0$"):
        catalog([packed("0.2.0", "b:2", channels=channels, replaces=f"{NAME}.v0.0.9")], first)


def test_published_image_is_kept_with_keep_images() -> None:
    first = catalog([packed("0.1.0", "b:1")])
    again = packed("0.1.0", "b:2")
    assert catalog([again], first, keep_images=True) == first
    assert [blob["image"] for blob in by_schema(catalog([again], first), "olm.bundle")] == ["b:2"]
    assert [blob["image"] for blob in by_schema(catalog([again], keep_images=True), "olm.bundle")] == ["b:2"]


def test_bundle_is_removed_from_channels_that_it_no_longer_lists() -> None:
    first = catalog([packed("0.1.0", "b:1", channels=("stable", "fast"))])
    second = catalog([packed("0.2.0", "b:2", channels=("stable",), replaces=f"{NAME}.v0.1.0")], first)
    moved = packed("0.2.0", "b:2", channels=("fast",), replaces=f"{NAME}.v0.1.0")
    third = catalog([moved], second)
    assert [[entry["name"][-6:] for entry in found] for found in entries(third).values()] == [
        ["v0.1.0", "v0.2.0"],
        ["v0.1.0"],
    ]
    alone = catalog([packed("0.1.0", "b:1", channels=("stable",))])
    assert list(entries(catalog([packed("0.1.0", channels=("fast",))], alone))) == ["fast"], (
        "an empty channel is removed"
    )


def test_other_documents_of_a_catalog_do_not_change() -> None:
    first = catalog([packed("0.1.0", "b:1")])
    deprecated = {
        "schema": "olm.deprecations",
        "package": NAME,
        "entries": [{"reference": {"schema": "olm.channel", "name": "stable"}, "message": "over"}],
    }
    second = catalog([packed("0.2.0", "b:2", replaces=f"{NAME}.v0.1.0")], f"{first}---\n{yaml.safe_dump(deprecated)}")
    assert blobs(second)[-1] == deprecated
    assert catalog([packed("0.2.0", "b:2", replaces=f"{NAME}.v0.1.0")], second) == second
    kept = catalog(
        [packed("0.1.0", "b:1")], first.replace("schema: olm.channel", "schema: olm.channel\nproperties: []")
    )
    assert "properties" in by_schema(kept, "olm.channel")[0]


def test_bundle_document_has_the_properties_that_opm_generates() -> None:
    (bundle,) = by_schema(catalog([Packed(GOOD, "b:1")]), "olm.bundle")
    properties: dict[str, list[Any]] = {}
    for each in bundle["properties"]:
        properties.setdefault(each["type"], []).append(each["value"])
    assert properties["olm.package"] == [{"packageName": NAME, "version": project_version()}]
    assert [(gvk["group"], gvk["version"], gvk["kind"]) for gvk in properties["olm.gvk"]] == [
        ("cache.example.com", "v1", "Memcached"),
        ("cache.example.com", "v1alpha1", "Memcached"),
        ("app.example.com", "v1", "AppService"),
    ]
    (metadata,) = properties["olm.csv.metadata"]
    csv = Packed(GOOD).csv()
    assert metadata["annotations"] == csv["metadata"]["annotations"]
    assert metadata["crdDescriptions"] == csv["spec"]["customresourcedefinitions"]
    assert metadata["minKubeVersion"] == "1.30.0"
    assert {each["image"] for each in bundle["relatedImages"]} == {
        "b:1", *(each["image"] for each in csv["spec"]["relatedImages"])
    }  # fmt: skip


def test_inline_catalog_contains_every_manifest_and_no_image() -> None:
    releases = [packed("0.1.0"), packed("0.2.0", replaces=f"{NAME}.v0.1.0", skips=(f"{NAME}.v0.1.1",))]
    text = catalog(releases, inline=True)
    for blob, release in zip(by_schema(text, "olm.bundle"), releases, strict=True):
        assert "image" not in blob
        data = [each["value"]["data"] for each in blob["properties"] if each["type"] == "olm.bundle.object"]
        assert [json.loads(base64.b64decode(each)) for each in data] == release.objects()
    assert entries(text)["stable"][1]["skips"] == [f"{NAME}.v0.1.1"]


def test_command_adds_several_bundles(tmp_path: Path) -> None:
    for release in (release_of("0.1.0"), release_of("0.2.0", replaces=f"{NAME}.v0.1.0")):
        write(tmp_path / release.version, generated(release), check=False, command="make bundle")
    folders = [str(tmp_path / version) for version in ("0.1.0", "0.2.0")]
    done = run("catalog", "--inline", "--output", str(tmp_path), *folders)
    assert (done.returncode, done.stdout) == (0, f"wrote {CATALOG}\n"), done.stderr
    assert [entry["name"] for entry in entries((tmp_path / CATALOG).read_text())["stable"]] == [
        f"{NAME}.v0.1.0",
        f"{NAME}.v0.2.0",
    ]
    assert run("catalog", "--inline", "--output", str(tmp_path), *folders).stdout == ""


@pytest.mark.parametrize("text", ["a: [", "a: 1\n", "- b\n"])
def test_invalid_catalog_is_reported_by_name(text: str) -> None:
    with pytest.raises(BundleError, match=CATALOG):
        catalog([packed("0.1.0", "b:1")], text)


def test_catalog_image_contains_the_labelled_directory() -> None:
    text = (Path(__file__).parents[3] / "catalog.Dockerfile").read_text()
    assert (
        "FROM scratch\nCOPY catalog /configs\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n" in text
    )
    ignored = (Path(__file__).parents[3] / ".dockerignore").read_text().splitlines()
    assert {"!bundle", "!catalog"} <= set(ignored)


def test_catalog_is_plain_yaml() -> None:
    schemas = [each["schema"] for each in yaml.safe_load_all(GOOD[CATALOG])]
    assert list(dict.fromkeys(schemas)) == ["olm.package", "olm.channel", "olm.bundle"]
