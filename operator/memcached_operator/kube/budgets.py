"""Limits how often something is done for each namespace."""


class Budgets:
    """How often something can still be done: `per_second`, and `burst` times at once after a pause, per namespace."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._left: dict[str, tuple[float, float]] = {}  # the number, as of a time

    def take(self, namespace: str, now: float) -> bool:
        """Count one time. Returns False if the namespace has none left. `now`: seconds of any clock."""
        left, at = self._left.get(namespace, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        # One that is complete again need not be remembered.
        complete = now - self._burst / self._per_second
        self._left = {name: each for name, each in self._left.items() if each[1] > complete}
        self._left[namespace] = (left - 1 if left >= 1 else left, now)
        return left >= 1
