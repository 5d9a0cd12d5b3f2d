"""Equivalent mutants of the decision tables: their rows decide, but no result differs, and why."""

from typing import Final

_FOLLOWUPS: Final = "member, follow-ups"
_NATIVE: Final = "member, native"
_TEXT: Final = "member, text of KIP-268"
_ANSWERS: Final = "leader, answers to native members"
_OWN: Final = "lowest used version, own number (empty, own number, text of KIP-268)"
_BY_THE_TEXT: Final = "empty answer to future members, by the text (text of KIP-268)"
_ABOUT_JVM_MEMBERS: Final = (
    "always version 2 (always version 2)",
    "empty answer to future members, own number (empty, own number)",
    "empty answer to future members, lowest number (empty, lowest number)",
    "separate tasks for future members (separate tasks)",
    _BY_THE_TEXT,
    _OWN,
)

REASONS: Final[dict[str, str]] = {
    f"{_FOLLOWUPS}: tasks wait to be revoked: says 'follow-up was asked for'": (
        "the requested time is 0: the same command"
    ),
    f"{_FOLLOWUPS}: nothing to follow: says 'follow-up was asked for'": (
        "the requested time is 'never': the same command"
    ),
    f"{_ANSWERS}: native member in the version it wrote: says"
    " 'native member above the leader, and readable'": (
        "the leader's nearest version is the one that the member wrote"
    ),
    f"{_ANSWERS}: native member above the leader, and readable: says"
    " 'native body that cannot be read'": (
        "the leader's nearest version is 101 in every existing program"
    ),
    f"{_NATIVE}: every member is upgraded: says 'a later JVM leads'": (
        "a version is offered, and both rows use it"
    ),
    f"{_TEXT}: leader ends the upgrade: says 'the leader is not upgraded yet'": (
        "the second number of the leader's own answer is its latest version: the same rejoin"
    ),
    f"{_NATIVE}: a member is not upgraded yet: says 'a later JVM leads'": (
        "a version is offered, and both rows use it"
    ),
    f"{_TEXT}: settled: says 'raised at the next rebalance'": (
        "the offered version is the one that the member writes already"
    ),
    f"leader: a member writes version 1 or 2 (all): says '{_OWN}'": (
        "versions 1 and 2 have no second number"
    ),
    f"leader: {_OWN}: says '{_BY_THE_TEXT}'": (
        "no member writes above the leader, and both rows have the leader's own second number"
    ),
} | {
    f"leader: natives only (native): says '{row}'": (
        "the group has native members only, which are answered by another table"
    )
    for row in _ABOUT_JVM_MEMBERS
}
"""Name of a mutant -> why its answer is the same."""
