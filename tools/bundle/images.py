"""The images of a release: those of the Deployments, related images, and digests."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Final

from bundle.objects import Object, containers
from cluster.public.programs import RELEASE_FAMILY, build_programs
from cluster.shell import run

RELATED: Final = "RELATED_IMAGE_"
AGENT: Final = f"{RELATED}AGENT"
"""The variable with the image of the agents."""
SECONDS: Final = 60.0
"""The limit for a registry's answer."""


def with_images(deployments: Iterable[Object], operator: str, agent: str) -> list[Object]:
    """The Deployments with these images: both processes use the operator's, and name that of the agents."""
    return _changed(deployments, lambda _: operator, lambda name, value: agent if name == AGENT else value)


def pinned(deployments: Iterable[Object], pin: Callable[[str], str]) -> list[Object]:
    """The Deployments with each image, including related ones, replaced by the result of `pin`."""
    return _changed(deployments, pin, lambda _, value: pin(value))


def _changed(
    deployments: Iterable[Object], run: Callable[[str], str], related: Callable[[str, str], str]
) -> list[Object]:
    """`related`: returns the value of a related variable from its name and its value."""
    copies = deepcopy(list(deployments))
    for container in containers(copies):
        container["image"] = run(container["image"])
        for variable in container.get("env", []):
            if variable["name"].startswith(RELATED):
                variable["value"] = related(variable["name"], variable["value"])
    return copies


def related_images(deployments: Iterable[Object]) -> list[dict[str, str]]:
    """Every image of the release, once; its name comes from its RELATED_IMAGE_ variable, else its repository."""
    found: dict[str, str] = {}
    for container in containers(deployments):
        found.setdefault(container["image"], repository(container["image"]).rpartition("/")[2])
        for name, value in related_variables(container).items():
            found.setdefault(value, name.removeprefix(RELATED).lower().replace("_", "-"))
    return [{"name": name, "image": image} for image, name in sorted(found.items(), key=lambda pair: pair[1])]


def related_variables(container: dict[str, Any]) -> dict[str, str]:
    """The RELATED_IMAGE_ variables of a container, by name."""
    return {
        variable["name"]: variable.get("value", "")
        for variable in container.get("env", [])
        if variable["name"].startswith(RELATED)
    }


def repository(image: str) -> str:
    """An image reference without tag and digest."""
    name = image.partition("@")[0]
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name


def by_digest(image: str) -> str:
    """The image by its current digest in the registry. Raises ClusterError with crane's error."""
    if "@" in image:
        return image
    crane = build_programs([(RELEASE_FAMILY, ("crane",))]) / "crane"
    return f"{repository(image)}@{run([crane, 'digest', image], timeout=SECONDS).strip()}"
