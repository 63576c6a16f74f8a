"""Image references. Checked against ParseNormalizedNamed of github.com/distribution/reference v0.6.0."""

import re
from itertools import product

import pytest

from memcached_api import image
from memcached_api.image import official_release

HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        "memcached",
        "memcached:1.6.38",
        "library/memcached:1.6",
        "docker.io/library/memcached:1.6.38-alpine",
        "localhost/memcached",
        "localhost:5000/memcached",
        "Foo/memcached",
        "registry.example.com:5000/a/b_c/d--e/f__g:T.a-g_1",
        "[::1]:5000/memcached",
        f"memcached@sha256:{HEX}",
        f"memcached:1.6@sha512:{HEX}{HEX}",
        "a" * 247,
        f"localhost/{'a' * 255}",
        f"x:{'t' * 128}",
    ],
)
def test_references(text: str):
    assert image.is_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "A",
        "a b",
        "memcached:",
        "memcached:-1",
        "memcached::1",
        "memcached@",
        "memcached@sha256:abc",
        f"memcached@md5:{HEX}",
        f"memcached@sha256:{HEX.upper()}",
        "a//b",
        "a___b",
        "-a/b:1:2",
        "a..b",
        "memcached\n",
        "mémcached",
        HEX,
        "a" * 248,  # library/ is prepended
        f"localhost/{'a' * 256}",
        f"x:{'t' * 129}",
        "a/" * 600 + "a",
    ],
)
def test_invalid_references(text: str):
    assert not image.is_reference(text)


HOSTS = ("", "docker.io/", "index.docker.io/", "localhost/", "x/", "X/", "a.b/", "h:5000/", "[::1]:5/", "a_b.c/")
SUFFIXES = ("", ":T.1", f"@sha256:{HEX}", f":1@sha256:{HEX}")


@pytest.mark.parametrize("length", [1, 245, 246, 247, 248, 253, 254, 255, 256, 400])
def test_length_limit_of_the_path_is_the_same_in_the_crd(length: int):
    for host, path, suffix in product(HOSTS, ("a" * length, f"a/{'a' * max(length - 2, 1)}"), SUFFIXES):
        text = f"{host}{path}{suffix}"
        fits = bool(re.search(image.PATH_WITHIN_LIMIT, text)) and not re.search(image.LIBRARY_PATH_TOO_LONG, text)
        assert fits == image.is_reference(text), text


@pytest.mark.parametrize(
    ("text", "repository", "fixed"),
    [
        ("memcached", "memcached", False),
        ("memcached:latest", "memcached", False),
        ("memcached:1.6", "memcached", True),
        (f"h:5000/a/b:latest@sha256:{HEX}", "h:5000/a/b", True),
        ("A b", "A b", False),
    ],
)
def test_parts(text: str, repository: str, fixed: bool):
    assert (image.repository(text), image.has_fixed_version(text)) == (repository, fixed)


OLDER = {
    ("memcached:1.6.18", "memcached:1.6.38"): True,
    ("memcached:1.6.38", "memcached:1.6.18"): False,
    ("memcached:1.6.9", "memcached:1.6.10-alpine"): True,
    ("memcached:1.5", "memcached:1.6.38"): True,
    ("memcached:1.6.38-alpine", "memcached:1.6.38"): False,
    ("memcached:latest", "memcached:latest"): False,
    ("memcached:1.6", "memcached:1.6.38"): None,
    ("memcached:1.6.38", "memcached:1.6"): None,
    ("memcached:1.6.18", "other:1.6.38"): None,
    ("memcached:latest", "memcached:1.6.38"): None,
    ("memcached:a", "memcached:b"): None,
    ("memcached:1.6.18", "memcached"): None,
    (None, "memcached:1"): None,
    ("A b", "memcached:1"): None,
}


@pytest.mark.parametrize(("pair", "older"), OLDER.items())
def test_older_tag_of_the_same_repository(pair: tuple[str | None, str], older: bool | None):
    assert image.is_older(*pair) is older


OFFICIAL = {
    "memcached:1.6.38": (1, 6, 38),
    "memcached:1.6.38-alpine": (1, 6, 38),
    "memcached:1.6.38x": None,
    "memcached:1.6.38.x": None,
    "library/memcached:1.6.38": (1, 6, 38),
    "docker.io/memcached:1.6.38": (1, 6, 38),
    "docker.io/library/memcached:1.6.38": (1, 6, 38),
    "index.docker.io/library/memcached:1.6.38": (1, 6, 38),
    "memcached": None,
    "memcached:1.6": None,
    "memcached:latest": None,
    f"memcached:1.6.38@sha256:{'a' * 64}": None,
    "bitnami/memcached:1.6.38": None,
    "localhost/memcached:1.6.38": None,
    "registry.example.com/library/memcached:1.6.38": None,
}


@pytest.mark.parametrize("reference", OFFICIAL)
def test_release_is_that_of_a_full_tag_of_the_official_image(reference: str):
    assert official_release(reference, "memcached") == OFFICIAL[reference]


VARIANTS = {
    "memcached:1.6.38": "",
    "host:5000/a/memcached:1.6.38-alpine3.21": "-alpine3.21",
    "memcached:latest": "",
    "memcached": "",
    "A b": "",
}


@pytest.mark.parametrize("reference", VARIANTS)
def test_variant_follows_the_version_in_the_tag(reference: str):
    assert image.variant(reference) == VARIANTS[reference]
