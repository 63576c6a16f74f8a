"""The bundle, catalog and config/ of this tree, and copies of the bundle with one change."""

from collections.abc import Callable
from typing import Any

import yaml

from bundle.files import read_tree
from bundle.objects import documents
from bundle.release import CSV_FILE, DOCKERFILE, MANIFESTS, PACKAGE, ROOT, project_version

Files = dict[str, str]
Document = Any
Change = Callable[[Document], object]

GOOD = read_tree(ROOT, "bundle", DOCKERFILE, "catalog")
CONFIG = read_tree(ROOT, "config")
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
CRD = f"{MANIFESTS}/cache.example.com_memcacheds.yaml"
NAME = f"{PACKAGE}.v{project_version()}"


def changed(path: str, change: Change) -> Files:
    """The files, with a change to the first YAML document of one file."""
    document = documents(GOOD[path], path)[0]
    change(document)
    return GOOD | {path: yaml.dump(document, Dumper=DUMPER)}


def csv(change: Change) -> Files:
    """The files, with a change to the ClusterServiceVersion."""
    return changed(CSV_FILE, change)
