"""The schemas of our kinds."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from faults.process import ROOT


@cache
def spec_schema(group: str, plural: str) -> Mapping[str, Any]:
    """The schema of a kind's spec in its storage version, from the CRD in config/crd."""
    crd = yaml.safe_load((ROOT / f"config/crd/bases/{group}_{plural}.yaml").read_text())
    version = next(version for version in crd["spec"]["versions"] if version["storage"])
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]
