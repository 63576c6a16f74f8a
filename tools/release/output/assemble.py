"""Building everything of a release from its tree into one directory."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from cluster.public.images import opened
from cluster.shell import run
from release.commit import changelog
from release.commit.plan import CHANGELOG, Plan
from release.commit.tree import Tree
from release.output import images, layouts, provenance, registry, sbom
from release.output.artifacts import HUB, PREDICATE, PROVENANCE, Artifacts, by_digest

INPUTS: Final = ("Dockerfile", "requirements/plugin.txt", "requirements/runtime.txt")
"""Files that decide what the images and the kubectl plugin contain besides the sources."""
PACKERS: Final = {"tools/chart": ("chart", "package"), "tools/plugin": ("plugin", "package", "--archive-only")}
"""The modules, and their commands, that pack the Helm chart and the kubectl plugin."""
INSTALLER: Final = "install.yaml"
HUB_SOURCE: Final = f"config/artifact-hub/{HUB}"


def assemble(tree: Tree, plan: Plan, artifacts: Artifacts, commit: str, builder: str, *, fresh: bool = False) -> None:
    """Build the images, install.yaml, the bills, the provenance, the list and the sums. Raises ClusterError."""
    shutil.rmtree(artifacts.root, ignore_errors=True)
    artifacts.root.mkdir(parents=True)
    names = plan.names.tagged(plan.version)
    recipe = plan.recipe(fresh=fresh)
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        if not plan.base:
            images.ensure_stand_in(opened("buildah"), Path(scratch))
        for part in images.PARTS:
            images.build(part, tree.root, recipe, artifacts.layout(part).root, names[part])
        data = Path(scratch) / "data"
        _write_data(tree, plan, artifacts, data)
        images.build("bundle", data, recipe, artifacts.layout("bundle").root, names["bundle"])
        _write_catalog(tree, by_digest(names, artifacts, "bundle"), data)
        images.build("catalog", data, recipe, artifacts.layout("catalog").root, names["catalog"])
        shutil.copy(data / "dist" / INSTALLER, artifacts.root / INSTALLER)
    for words in packers(tree.root):
        tree.run("-m", *words, f"--output={artifacts.root}")
    _write_chart(tree, plan, artifacts)
    _write_bills(plan, artifacts)
    artifacts.write_list(names)
    seal(tree, plan, artifacts, commit, builder)


def seal(tree: Tree, plan: Plan, artifacts: Artifacts, commit: str, builder: str) -> None:
    """Write the provenance, which names the commit, and the sums: again when the release is committed."""
    for name in (PREDICATE, PROVENANCE):
        (artifacts.root / name).unlink(missing_ok=True)
    _write_provenance(tree, plan, artifacts, commit, builder)
    artifacts.write_sums()


def packers(root: Path) -> list[tuple[str, ...]]:
    """The commands of PACKERS that a tree has: that of an earlier release lacks some."""
    return [words for folder, words in PACKERS.items() if (root / folder).exists()]


def _write_data(tree: Tree, plan: Plan, artifacts: Artifacts, target: Path) -> None:
    """Write the bundle and install.yaml with the images by digest, and what the images of bundle and catalog need."""
    names = plan.names.tagged(plan.version)
    pair = [
        f"--image={by_digest(names, artifacts, 'operator')}",
        f"--agent-image={by_digest(names, artifacts, 'agent')}",
    ]
    target.mkdir()
    for command, source in (("generate", "config/manifests"), ("installer", "config/default")):
        rendered = tree.run("-m", "project", "render", source)
        tree.run("-m", "bundle", command, f"--version={plan.version}", *pair, f"--output={target}", stdin=rendered)
    for name in (".dockerignore", "catalog.Dockerfile"):
        shutil.copy(tree.root / name, target / name)
    shutil.copytree(tree.root / "catalog", target / "catalog")


def _write_catalog(tree: Tree, bundle: str, target: Path) -> None:
    tree.run("-m", "bundle", "catalog", target, f"--bundle-image={bundle}", f"--output={target}")


def _write_chart(tree: Tree, plan: Plan, artifacts: Artifacts) -> None:
    """Write the packed chart as an artifact, and what Artifact Hub reads about its repository, if the tree has them."""
    for archive in artifacts.root.glob(f"{images.CHART_NAME}-*.tgz"):
        name = plan.names.tagged(plan.version)[images.CHART]
        registry.chart(archive.read_bytes(), plan.epoch).write(artifacts.layout(images.CHART).root, name)
    if (tree.root / HUB_SOURCE).exists():
        shutil.copy(tree.root / HUB_SOURCE, artifacts.root / HUB)


def _write_bills(plan: Plan, artifacts: Artifacts) -> None:
    for part in images.PARTS:
        layout, name = artifacts.layout(part), getattr(plan.names, part)
        for architecture, digest in layout.platforms().items():
            files = layouts.files(layout, digest, *sbom.SUFFIXES)
            bill = sbom.bill(name, plan.version, digest, architecture, plan.epoch, files)
            artifacts.write_json(artifacts.bill(part, architecture), bill)


def _write_provenance(tree: Tree, plan: Plan, artifacts: Artifacts, commit: str, builder: str) -> None:
    url = changelog.repository((tree.root / CHANGELOG).read_text())
    recipe = plan.recipe(fresh=False)
    bases = tuple(sorted({*recipe.bases.values(), recipe.build_base}))
    inputs = {name: layouts.sha256(tree.root / name) for name in INPUTS if (tree.root / name).exists()}
    tools = {"buildah": run(["buildah", "--version"]).split()[2]}
    origin = provenance.Origin(
        url, commit, builder or f"{url}/blob/v{plan.version}/docs/releasing.md", bases, inputs, tools
    )
    named = {name.rpartition(":")[0]: artifacts.layout(part).digest for part, name in artifacts.names().items()}
    made = provenance.predicate(plan.version, plan.epoch, origin)
    subject = provenance.subjects(
        named, {name: digest for name, digest in artifacts.sums().items() if "/index.json" not in name}
    )
    artifacts.write_json(PREDICATE, made)
    artifacts.write_json(PROVENANCE, provenance.statement(subject, made))
