"""OLM's programs, built from tools/go/olm and tools/go/operator-sdk when they are first needed."""

import json
import shutil
from pathlib import Path

from cluster.console.progress import Progress
from cluster.public.programs import GO_ENV, Family, build_programs, directory, ensure_go
from cluster.shell import run

SOURCE = "github.com/operator-framework"
OLM_MODULE = f"{SOURCE}/operator-lifecycle-manager"
TAGS = ("containers_image_openpgp", "json1", "netgo", "osusergo")
"""The tags of operator-registry's Makefile, for all of tools/go/olm: Go compiles shared packages once."""

VERIFY = Family(
    "operator-verify",
    "operator-verify",
    {"operator-verify": f"{SOURCE}/api/cmd/operator-verify"},
    tags=TAGS,
    folder="olm",
)
RENDERER = Family("render-v1", "OLM v1's renderer", {"render-v1": "./render-v1"}, tags=TAGS, folder="olm")
OPM = Family("opm", "opm", {"opm": f"{SOURCE}/operator-registry/cmd/opm"}, tags=TAGS, folder="olm")
OLM = Family(
    "olm", "OLM", {"olm": f"{OLM_MODULE}/cmd/olm", "catalog": f"{OLM_MODULE}/cmd/catalog"}, tags=TAGS, folder="olm"
)
SDK = Family(
    "operator-sdk",
    "operator-sdk",
    {"operator-sdk": f"{SOURCE}/operator-sdk/cmd/operator-sdk"},
    tags=("containers_image_openpgp",),
)
VALIDATION = (VERIFY, OPM, RENDERER, SDK)
INSTALLATION = (OPM, OLM)
EVERY = (VERIFY, OPM, RENDERER, OLM, SDK)
"""Quick builds first. All except operator-sdk share compiled packages."""


def programs(families: tuple[Family, ...], progress: Progress | None = None) -> Path:
    """Build what is missing; return the directory of the programs. Raises ClusterError with the compiler's output."""
    return build_programs([(family, tuple(family.programs)) for family in families], progress)


def definitions() -> Path:
    """The directory of OLM's own CustomResourceDefinitions, copied from its Go module to the cache."""
    kept = directory(OLM) / "crds"
    if not kept.exists():
        words = [ensure_go(), "mod", "download", "-json", OLM_MODULE]
        source = json.loads(run(words, env=GO_ENV, cwd=OLM.module))["Dir"]
        partial = kept.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(Path(source) / "deploy/chart/crds", partial)
        partial.rename(kept)
    return kept
