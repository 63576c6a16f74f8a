"""The files in config/ of a project in which the throw-away kind of support/widget.py is registered."""

import shutil
from pathlib import Path
from typing import Any

import yaml

from crds import config
from crds.__main__ import ROOT, write
from crds.registered import REGISTERED, Registered
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Resource
from support.widget import WIDGET
from support.widget_controller import APP_NAME, OWNS

OBSERVES = (POD_DISRUPTION_BUDGETS, Resource("networking.k8s.io", "v1", "Ingress", "ingresses"))
"""The resources of which its controller also reads the objects of others: one that it owns, and one that no kind owns.
"""
THIRD = (*REGISTERED, Registered(WIDGET, APP_NAME, OWNS, OBSERVES))
"""All registered kinds."""
SAMPLE: dict[str, Any] = {
    "apiVersion": "test.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "widget-sample"},
    "spec": {"size": 3},
}


def generate(root: Path) -> None:
    """Copy config/ into `root`, add a sample of the third kind, and do what `make manifests` does."""
    shutil.copytree(ROOT / "config", root / "config")
    (root / config.SAMPLES / "test_v1_widget.yaml").write_text(yaml.safe_dump(SAMPLE))
    write(config.files(THIRD, root), check=False, root=root)
