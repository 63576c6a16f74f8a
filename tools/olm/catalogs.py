"""Serves catalogs to OLM on the local cluster."""

import shutil
from pathlib import Path

from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.public.components import Kube, apply, end, ensure_running, wait, write
from cluster.shell import run
from olm import components
from olm.objects import GROUP, catalog_source
from olm.programs import OPM, programs
from olm.running import local_cluster, registries

READY_SECONDS = 60.0
FILE = "catalog.json"
OPM_SECONDS = 120.0


def render(opm: Path, catalog: Path) -> str:
    """A catalog as one stream of JSON. Raises ClusterError with opm's error."""
    if not catalog.is_dir():
        raise ClusterError(f"there is no directory {catalog}: generate it with `python3 -m bundle catalog`")
    run([opm / "opm", "validate", catalog], timeout=OPM_SECONDS)
    return run([opm / "opm", "render", catalog, "-o", "json"], timeout=OPM_SECONDS)


def serve(catalog: Path, name: str, namespace: str) -> bool:
    """Serve a catalog to OLM and wait until OLM reads it; returns whether it is new or changed.

    A copy is served: run this again after a change. Bundles must be inline, because the cluster cannot pull images.
    """
    state, plan = local_cluster()
    opm = programs((OPM,))
    text = render(opm, catalog)
    with waiting_for(f"cluster-{plan.name}"):
        port, fresh = place(state, name, text)
        ensure_running(state, components.registry(plan, state, opm, name, port))
        address = f"{plan.node_address}:{port}"
        apply(state, "-f", "-", stdin=catalog_source(name, namespace, address))
        wait(f"OLM reads the catalog {name!r}", lambda: read_by_olm(state, namespace, name, address), READY_SECONDS)
    return fresh


def place(state: State, name: str, text: str) -> tuple[int, bool]:
    """Write a catalog's text to the served directory; returns the port, and whether the text is new.

    A new text gets a new port, so that OLM connects to it immediately instead of retrying the old connection.
    """
    known, folder = registries(state), components.catalog_directory(state, name)
    file = folder / FILE
    if name in known and file.exists() and file.read_text() == text:
        return known[name], False
    end(state, components.PREFIX + name)
    shutil.rmtree(folder, ignore_errors=True)
    write(file, text)
    return components.free_port(known.values()), True


def read_by_olm(state: State, namespace: str, name: str, address: str) -> bool:
    """Tell whether OLM is connected to the registry at this address."""
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/catalogsources/{name}"
    found = Kube(state.kubeconfig).request("GET", path) or {}
    connection = found.get("status", {}).get("connectionState", {})
    return (connection.get("address"), connection.get("lastObservedState")) == (address, "READY")
