"""The goldens of a release: objects as the API server stores them, and the children that the release applies."""

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from goldens import FOLDER, KINDS, Object, children, objects, paths, text
from memcached_api.annotations import INTENT_ANNOTATION
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.intent import digest_v1, intent_digest
from support.kube import kubectl

UID = "00000000-0000-4000-8000-000000000000"
DIGESTS: dict[str, Callable[[Object], str]] = {"0.1.0": digest_v1}
"""How a release computed the digest of an intent, where it is not the way of today."""
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


def with_digests(release: str, found: Sequence[Object]) -> str:
    """The text of a release's golden with digests that match its children: they also depend on the API group."""
    digest = DIGESTS.get(release, intent_digest)
    return text(found[0], *(_with_digest(child, digest) for child in found[1:]))


def _with_digest(child: Object, digest: Callable[[Object], str]) -> Object:
    annotations = {name: value for name, value in child["metadata"]["annotations"].items() if name != INTENT_ANNOTATION}
    meta = {name: value for name, value in child["metadata"].items() if name != "annotations"}
    plain = {**child, "metadata": {**meta, **({"annotations": annotations} if annotations else {})}}
    return {**plain, "metadata": {**meta, "annotations": {**annotations, INTENT_ANNOTATION: digest(plain)}}}
