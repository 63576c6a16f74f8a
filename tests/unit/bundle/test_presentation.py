"""Icon and texts that catalogs and consoles display; no validator checks them."""

from typing import Any
from xml.etree import ElementTree

import pytest

from bundle.catalog import Packed
from unit.bundle.tree import CONFIG, GOOD

CSV = Packed(GOOD).csv()
ANNOTATIONS: dict[str, str] = CSV["metadata"]["annotations"]
SPEC: dict[str, Any] = CSV["spec"]
SHAPES = {"svg", "g", "path", "rect", "circle", "ellipse", "line", "polygon", "title"}
MAX_ICON = 32 * 1024
"""Bytes. Every copy of the catalog metadata contains the icon."""


def test_icon_is_a_small_square_svg_of_shapes() -> None:
    text = CONFIG["config/manifests/bases/icon.svg"]
    root = ElementTree.fromstring(text)  # noqa: S314 (a file of this tree)
    _, _, width, height = root.attrib["viewBox"].split()
    assert (width, root.attrib["width"]) == (height, root.attrib["height"])
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= SHAPES
    assert not [key for each in root.iter() for key in each.attrib if key.startswith("on") or key.endswith("href")]
    assert len(text) <= MAX_ICON


@pytest.mark.parametrize(
    ("text", "shortest", "longest"),
    [
        (SPEC["displayName"], 3, 50),
        (ANNOTATIONS["description"], 20, 135),
        (SPEC["description"], 200, 10_000),
    ],
)
def test_texts_have_the_length_that_community_catalogs_require(text: str, shortest: int, longest: int) -> None:
    """The limits of the community-operators pipeline. OperatorHub shows 135 characters on a tile."""
    assert shortest <= len(text) <= longest


def test_fields_that_community_catalogs_require_are_set() -> None:
    assert all(ANNOTATIONS.get(key) for key in ("containerImage", "repository", "support"))
    assert all(SPEC.get(key) for key in ("keywords", "maintainers", "links"))
