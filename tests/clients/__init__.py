"""Client libraries against real pods: which keys they find after a pod was replaced and after a change of the size."""
