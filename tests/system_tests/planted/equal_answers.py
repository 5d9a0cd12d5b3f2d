"""Mutants of the decision tables that nobody can notice, though their rows decide, and why."""

from typing import Final

_FOLLOWUPS: Final = "member, follow-ups"
_NATIVE: Final = "member, native"
_TEXT: Final = "member, text of KIP-268"
_ANSWERS: Final = "leader, answers to members of ours"
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
        "the time that is asked for is 0 there: the same command"
    ),
    f"{_FOLLOWUPS}: nothing to follow: says 'follow-up was asked for'": (
        "the time that is asked for is 'never' there: the same command"
    ),
    f"{_ANSWERS}: native member in the version it wrote: says"
    " 'native member above us, and readable'": (
        "the nearest version of ours is the one that the member wrote"
    ),
    f"{_ANSWERS}: native member above us, and readable: says 'native body that cannot be read'": (
        "the nearest version of ours is 101 in every program that there is"
    ),
    f"{_NATIVE}: everyone has been bounced: says 'a later JVM leads'": (
        "a version is offered there, and both rows go by it"
    ),
    f"{_TEXT}: leader ends the upgrade: says 'leader has not been bounced'": (
        "the second number of the leader's own answer is its latest version: the same rejoin"
    ),
    f"{_NATIVE}: somebody has not been bounced: says 'a later JVM leads'": (
        "a version is offered there, and both rows go by it"
    ),
    f"{_TEXT}: settled: says 'lifted in passing'": (
        "what is offered there is what the member writes already"
    ),
    f"leader: somebody writes version 1 or 2 (all): says '{_OWN}'": (
        "versions 1 and 2 have no second number"
    ),
    f"leader: {_OWN}: says '{_BY_THE_TEXT}'": (
        "nobody writes above the leader there, and the second number is its own in both rows"
    ),
} | {
    f"leader: natives only (native): says '{row}'": (
        "only members of ours are there, who are answered by a table of their own"
    )
    for row in _ABOUT_JVM_MEMBERS
}
"""Name of a mutant -> why its answer is the same."""
