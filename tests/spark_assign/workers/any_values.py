"""Any JSON value, and a value changed at any place; for property tests."""

from hypothesis import strategies as st

NUMBERS = (-1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30), 10**400)
FLOATS = (0.5, -0.0, 5e-324, 1e15, 1e300, float("inf"), float("-inf"), float("nan"))
WORDS = ("", "a", "b", "0_0", "00_1", "running", "unknown", "none", "balance_subtopology")
WORDS += ("1" * 5000, "x\ny\x1b[2J", "\u202eabc", "\ud800", "\0", "zone", "\uffff")

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 50)
    | st.sampled_from((*NUMBERS, *FLOATS, *WORDS))
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def paths(value, at=()):
    """Paths to all values in nested lists and objects."""
    yield at
    inner = []
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, nested in inner:
        yield from paths(nested, (*at, key))


def changed(value, path, new):
    """The value with `new` at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy
