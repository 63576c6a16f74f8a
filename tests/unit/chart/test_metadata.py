"""What Artifact Hub shows of the chart."""

from uuid import UUID

from bundle.images import related_variables
from bundle.objects import Object, containers, mapping, parse
from bundle.release import project_version
from chart.generate import FOLDER
from unit.config.rendered import ROOT


def test_metadata_of_the_chart() -> None:
    chart = mapping((ROOT / FOLDER / "Chart.yaml").read_text(), "Chart.yaml")
    assert (chart["name"], chart["version"], chart["appVersion"]) == (
        "memcached-operator",
        project_version(),
        project_version(),
    )
    for name in ("changes", "crds", "crdsExamples", "images", "links"):
        assert isinstance(chart["annotations"][f"artifacthub.io/{name}"], str)
    images = parse_list(chart["annotations"]["artifacthub.io/images"])
    installer = parse((ROOT / "dist/install.yaml").read_text(), "dist/install.yaml")
    used: set[str] = set()
    for container in containers(each for each in installer if each["kind"] == "Deployment"):
        used |= {container["image"], *related_variables(container).values()}
    assert {each["image"] for each in images} == used


def test_owners_on_artifact_hub_are_the_maintainers() -> None:
    metadata = mapping((ROOT / "config/artifact-hub/artifacthub-repo.yml").read_text(), "artifacthub-repo.yml")
    assert sorted(metadata) == ["owners", "repositoryID"], "Artifact Hub ignores a misspelled field"
    assert str(UUID(metadata["repositoryID"])) == metadata["repositoryID"]
    assert metadata["owners"] == mapping((ROOT / FOLDER / "Chart.yaml").read_text(), "Chart.yaml")["maintainers"]


def parse_list(text: str) -> list[Object]:
    """The items of an annotation of Artifact Hub."""
    return mapping(f"items:\n{text}", "annotation")["items"]
