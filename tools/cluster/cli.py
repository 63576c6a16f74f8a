"""The command line of `python3 -m cluster`."""

import sys
from cluster import record, up as up_module
from cluster.down import down
from cluster.errors import ClusterError
from cluster.progress import Progress


def main():
    try:
        name = record.cluster_name()
        if sys.argv[1] == "up":
            mode = record.choose_mode()
            state = up_module.up(name, mode, Progress(up_module.steps(mode)))
            print(f"export KUBECONFIG={state.kubeconfig}")
        else:
            print(down(name))
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
