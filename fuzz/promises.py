"""What targets raise where a promise does not hold."""


class Finding(Exception):
    """A promise does not hold."""


def expect(holds: bool, promise: str) -> None:  # noqa: FBT001 reads as an assertion
    """Raise `Finding` with the promise unless it holds."""
    if not holds:
        raise Finding(promise)
