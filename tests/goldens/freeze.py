"""The goldens of a release: objects as the API server stores them, and the children that the release applies."""

import json
from importlib.metadata import version
from pathlib import Path

from goldens import FOLDER, KINDS, Object, children, objects, paths, text
from memcached_operator.reconcile.apply import build_intent
from support.kube import kubectl

UID = "00000000-0000-4000-8000-000000000000"
UNADMITTED = ("minimal-v1",)
"""Shapes that are frozen a second time, as they are stored while admission is away: no image is pinned in them."""


def freeze() -> Path:
    """Write the goldens of the release that is deployed on the cluster of KUBECONFIG; their folder.

    Raises FileExistsError where the release is frozen already.
    """
    folder = FOLDER / "releases" / version("memcached-operator")
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for shape, path in paths(kind).items():
            cr = stored(objects(path)[0], KINDS[kind].resource.api_version)
            (folder / kind / f"{shape}.yaml").write_text(frozen(cr))
            if shape in UNADMITTED:
                bare = {name: value for name, value in cr["spec"].items() if name != "image"}
                (folder / kind / f"{shape}-unadmitted.yaml").write_text(frozen({**cr, "spec": bare}))
    return folder


def stored(cr: Object, api_version: str) -> Object:
    """What the API server would store, with admission, in the version that the controller reads."""
    done = kubectl("create", "--dry-run=server", "--output=json", "--filename=-", stdin=cr)
    found = json.loads(done.stdout)
    meta = {name: found["metadata"][name] for name in ("name", "namespace", "generation")}
    return {"apiVersion": api_version, "kind": cr["kind"], "metadata": {**meta, "uid": UID}, "spec": found["spec"]}


def frozen(cr: Object) -> str:
    """The text of a golden of a release."""
    return text(cr, *(build_intent(cr, child) for child in children(cr)))
