"""The rule that changes the slots over which the proxies distribute keys."""

from memcached_operator.parts.ring import Ring


def next_ring(now: Ring | None, wanted: Ring, *, ready: bool) -> Ring:
    """The ring that the pods should have: a smaller one at once, a larger one when all of its slots are ready.

    So proxies that serve never get another slot that has never run. Without a ring of this Memcached, as after it was
    deleted and created again, they get all of its slots at once: no request is served before anyway. `now`: that of the
    pod template; None without one. `ready`: whether all slots of `wanted` are. The Memcached itself waits for them
    before it begins a phase of a change of size.
    """
    if now is None or not now.is_of(wanted) or wanted.move or now.move or wanted.servers <= now.servers or ready:
        return wanted
    return now
