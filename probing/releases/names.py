"""Releases by what an operator calls them, and what is known instead of an unknown one."""

import difflib
from typing import Final

from probing.releases.lookup import (
    NATIVE,
    NEWEST_KAFKA,
    RELEASES,
    Release,
    ReleaseError,
    parse_order,
)
from probing.releases.rows import PATCHES_BY_SERIES

# For tests: a message names them only for a typing error in their own names.
_EMULATED: Final = [release.name for release in RELEASES if release.is_native][1:]
_RELEASE_BY_NAME: Final = {release.name: release for release in RELEASES}
_KNOWN: Final = f"known are {RELEASES[0].name} to {NEWEST_KAFKA}, the newest, and {NATIVE}"
# Later releases overwrite earlier ones: a series, or a major number, stands for its newest release.
_RELEASE_BY_SERIES: Final = {release.series: release for release in RELEASES}
_RELEASE_BY_MAJOR: Final = {
    str(release.order[0]): release
    for release in RELEASES
    if release.order[0] and not release.is_native
}


def _nearest_names(text: str) -> list[str]:
    """Return up to four known names that are similar to ``text``, oldest first; none: none is."""
    if same_prefix := [name for name in PATCHES_BY_SERIES if name.startswith(f"{text}.")]:
        return same_prefix[-4:]
    order = parse_order(text)
    if order is None:
        names = [name for name in (*_RELEASE_BY_NAME, *PATCHES_BY_SERIES) if name not in _EMULATED]
        near = difflib.get_close_matches(text, _EMULATED, n=1, cutoff=0.8)
        cutoff = 0.5 if any(map(str.isdigit, text)) else 0.8
        return near or difflib.get_close_matches(text, names, n=3, cutoff=cutoff)
    kafka = [release for release in RELEASES if not release.is_native]
    position = sum(release.order <= order for release in kafka)
    return [release.name for release in kafka[max(position - 1, 0) : position + 1]]


def _what_is_known(text: str) -> str:
    """Return which releases are known instead of an unknown one."""
    order = parse_order(text) or ()
    if series := [name for name in PATCHES_BY_SERIES if order and text.startswith(f"{name}.")]:
        newest = _RELEASE_BY_SERIES[series[0]].name
        return (
            f"the newest patch of {series[0]} recorded here is {newest}; it stands for a later one,"
            " unless Kafka's upgrade notes of that patch say otherwise"
        )
    if order > _RELEASE_BY_NAME[NEWEST_KAFKA].order:
        return f"the newest release recorded here is {NEWEST_KAFKA}"
    near = _nearest_names(text)
    many = f"the nearest known release{'s are' if near[1:] else ' is'} {', '.join(near)}"
    return many if near else _KNOWN


def find_release(text: str) -> Release:
    """Return the release that ``text`` names; blanks around it do not count.

    Args:
        text: a patch ("2.3.1", "0.10.2.1"), a series or a major number for its newest release
            ("2.3", "0.10.2", "4"), "native", or the emulated later releases "next" and
            "incompatible".

    Raises:
        ReleaseError: no such release; the message names the nearest known ones, or the newest.
    """
    name = text.strip()
    for known in (_RELEASE_BY_NAME, _RELEASE_BY_SERIES, _RELEASE_BY_MAJOR):
        if name in known:
            return known[name]
    raise ReleaseError(f"release {name[:40]!r} is unknown; {_what_is_known(name)}")
