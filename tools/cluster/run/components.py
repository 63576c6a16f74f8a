"""The components of a cluster as data: command, environment and probe. Pure functions of the plan."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.paths import State
from cluster.plan import Plan
from cluster.run.probes import Probe

LOUD_CLIENT = ["--kube-api-qps=500", "--kube-api-burst=1000"]
"""Client rate limits are so high that they never delay a test."""

ENVIRONMENT = {"GOGC": "300"}
"""Of all components: Go programs collect garbage at four times the live memory instead of twice. A control plane with
our CRDs and policies starts with a quarter less CPU time, and needs 300 MiB more."""


@dataclass(frozen=True)
class Component:
    """A process that the supervisor runs; ready when its probe succeeds."""

    name: str
    argv: list[str]
    probe: Probe
    env: dict[str, str] = field(default_factory=dict[str, str])

    def to_json(self) -> dict[str, Any]:
        """The entry in the supervisor's file."""
        return {"argv": self.argv, "env": ENVIRONMENT | self.env, "probe": self.probe}


@dataclass(frozen=True)
class Programs:
    """Paths of the programs: our own builds and the system's."""

    bin: Path
    containerd: str = ""

    def __getitem__(self, name: str) -> str:
        return str(self.bin / name)


def components(plan: Plan, state: State, programs: Programs) -> list[Component]:
    """All components of a mode, in the order in which they start."""
    control_plane = [
        etcd(plan, state, programs),
        apiserver(plan, state, programs),
        controller_manager(plan, state, programs),
        scheduler(plan, state, programs),
    ]
    if plan.mode == "control-plane":
        return [*control_plane, kwok(plan, state, programs)]
    return [
        containerd(state, programs),
        *control_plane,
        kubelet(plan, state, programs),
        proxy(plan, state, programs),
        coredns(state, programs),
    ]


def etcd(plan: Plan, state: State, programs: Programs) -> Component:
    """etcd, on loopback; without fsync, because a test cluster's data is not kept."""
    client = f"http://127.0.0.1:{plan.ports['etcd']}"
    peer = f"http://127.0.0.1:{plan.ports['etcd_peer']}"
    argv = [
        programs["etcd"],
        f"--data-dir={state.dir}/etcd",
        "--unsafe-no-fsync",
        "--snapshot-count=10000",
        "--quota-backend-bytes=4294967296",
        "--auto-compaction-retention=5m",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]
    return Component("etcd", argv, {"kind": "http", "target": f"{client}/health"})


def apiserver(plan: Plan, state: State, programs: Programs) -> Component:
    """The API server, with the admission plug-ins and the audit log that the tests rely on."""
    address, port = plan.node_address, plan.ports["apiserver"]
    argv = [
        programs["kube-apiserver"],
        f"--etcd-servers=http://127.0.0.1:{plan.ports['etcd']}",
        f"--bind-address={address}",
        f"--advertise-address={advertised(plan)}",
        f"--secure-port={port}",
        f"--cert-dir={state.certificates}",
        f"--token-auth-file={state.config}/tokens.csv",
        "--authorization-mode=Node,RBAC",
        # The second is on by default in OpenShift: blockOwnerDeletion then needs `update` on finalizers.
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        # To pods directly. Without nodes, a Service of type ExternalName leads to a webhook on this machine instead.
        f"--enable-aggregator-routing={'true' if plan.mode == 'node' else 'false'}",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={plan.service_cidr}",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={state.config}/service-accounts.key",
        f"--service-account-signing-key-file={state.config}/service-accounts.key",
        f"--audit-policy-file={state.config}/audit-policy.yaml",
        f"--audit-log-path={state.audit_log}",
        # Blocking mode: the line is in the file when the request ends. Tests read it immediately.
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=2000",
        "--audit-log-maxbackup=2",
        # Tests create bursts of a thousand objects; API priority and fairness must not throttle them.
        "--max-requests-inflight=800",
        "--max-mutating-requests-inflight=400",
        "--shutdown-delay-duration=0s",
        "--profiling=false",
    ]
    return Component("apiserver", argv, {"kind": "http", "target": f"https://{address}:{port}/readyz"})


def advertised(plan: Plan) -> str:
    """The address behind the `kubernetes` Service, which may not be loopback. Without a node it is unused."""
    return plan.node_address if plan.mode == "node" else plan.host_address


def controller_manager(plan: Plan, state: State, programs: Programs) -> Component:
    """The controller manager, without cloud and certificate signing controllers."""
    port = plan.ports["controller_manager"]
    argv = [
        programs["kube-controller-manager"],
        f"--kubeconfig={state.config}/controller-manager.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={state.config}/service-accounts.key",
        f"--root-ca-file={state.certificates}/apiserver.crt",
        f"--cluster-cidr={plan.pod_cidr}",
        "--allocate-node-cidrs=false",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--profiling=false",
        *LOUD_CLIENT,
    ]
    return Component("controller-manager", argv, {"kind": "http", "target": f"https://127.0.0.1:{port}/healthz"})


def scheduler(plan: Plan, state: State, programs: Programs) -> Component:
    """The scheduler."""
    port = plan.ports["scheduler"]
    argv = [
        programs["kube-scheduler"],
        f"--kubeconfig={state.config}/scheduler.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--leader-elect=false",
        "--profiling=false",
        *LOUD_CLIENT,
    ]
    return Component("scheduler", argv, {"kind": "http", "target": f"https://127.0.0.1:{port}/healthz"})


def kwok(plan: Plan, state: State, programs: Programs) -> Component:
    """kwok, which simulates the kubelet: pods of the simulated node become Ready without containers."""
    argv = [
        programs["kwok"],
        f"--kubeconfig={state.config}/kwok.kubeconfig",
        "--manage-all-nodes=true",
        f"--cidr={plan.pod_cidr}",
        f"--node-ip={plan.host_address}",
        f"--server-address=127.0.0.1:{plan.ports['kwok']}",
        f"--config={state.config}/kwok.yaml",
        # Without a Lease the node would become NotReady after 50 s, and its pods unready.
        "--node-lease-duration-seconds=40",
        "--v=WARN",
    ]
    target = f"http://127.0.0.1:{plan.ports['kwok']}/healthz"
    return Component("kwok", argv, {"kind": "http", "target": target})


def containerd(state: State, programs: Programs) -> Component:
    """containerd."""
    argv = [programs.containerd, f"--config={state.config}/containerd.toml", "--log-level=warn"]
    return Component("containerd", argv, {"kind": "unix", "target": str(state.containerd_socket)})


def kubelet(plan: Plan, state: State, programs: Programs) -> Component:
    """The kubelet."""
    argv = [
        programs["kubelet"],
        f"--kubeconfig={state.config}/kubelet.kubeconfig",
        f"--config={state.config}/kubelet.yaml",
        f"--hostname-override={plan.node_name}",
        f"--node-ip={plan.node_address}",
    ]
    return Component("kubelet", argv, {"kind": "http", "target": "http://127.0.0.1:10248/healthz"})


def proxy(plan: Plan, state: State, programs: Programs) -> Component:
    """kube-proxy, with iptables rules in the cluster's network namespace."""
    argv = [
        programs["kube-proxy"],
        f"--kubeconfig={state.config}/proxy.kubeconfig",
        f"--hostname-override={plan.node_name}",
        f"--cluster-cidr={plan.pod_cidr}",
        "--proxy-mode=iptables",
        "--iptables-min-sync-period=100ms",
        "--healthz-bind-address=127.0.0.1:10256",
        # These limits belong to the host; do not change them.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]
    return Component("proxy", argv, {"kind": "http", "target": "http://127.0.0.1:10256/livez"})


def coredns(state: State, programs: Programs) -> Component:
    """Cluster DNS, on the node's address."""
    argv = [programs["coredns"], f"-conf={state.config}/Corefile"]
    return Component("dns", argv, {"kind": "http", "target": "http://127.0.0.1:8181/ready"})
