"""Formats that change between releases, what cannot be taken back, and what members did.

The rows of `releases.toml` that only paths and plans use, each with its evidence: its source, and
the experiments of `experiments.toml` that ran it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from probing.releases import PATCHES_BY_SERIES, RELEASE_TABLES, RELEASES
from probing.tables import Form, read_table

_NAME: Final = tuple(release.name for release in RELEASES)
_RESULT: Final[dict[str, Form]] = {
    "claim": str,
    "old": _NAME,
    "new": _NAME,
    "pin": ("", *PATCHES_BY_SERIES),
    "seen": str,
}
_RESULTS: Final = read_table(
    "probing.releases", "experiments.toml", {"result?": [{**_RESULT, "as_expected": bool}]}
).get("result", [])

_MAX_PAIRS: Final = 4
NOT_RUN: Final = "by Kafka's notes, not run"


def seen_with(claims: Iterable[str]) -> str:
    """Return what members of published releases did, as text for people: `experiments.toml`.

    Args:
        claims: names of claims; one that no experiment ran adds nothing.
    """
    found: dict[str, dict[str, None]] = {}
    rows = [row for name in claims for row in _RESULTS if row["claim"] == name]
    # A trial without the pin, next to those with it, shows what the pin prevents.
    unpinned = " (without upgrade.from)" if any(row["pin"] for row in rows) else ""
    for row in rows:
        is_pair = row["old"] != row["new"]
        pair = f"{row['old']} + {row['new']}" if is_pair else row["old"]
        pin = f" (upgrade.from={row['pin']})" if row["pin"] else unpinned
        seen = row["seen"].replace(row["old"], "the older one" if is_pair else "the member")
        seen = seen.replace(row["new"], "the newer one")
        found.setdefault(seen, {})[pair + pin] = None
    if not found:
        return NOT_RUN
    return "; ".join(f"run with {_few([*pairs])}: {seen}" for seen, pairs in found.items())


def _few(pairs: Sequence[str]) -> str:
    """Return pairs of releases as text; of many, the first ones and a number."""
    more = len(pairs) - _MAX_PAIRS
    return ", ".join(pairs[:_MAX_PAIRS]) + (f" and {more} more" if more > 0 else "")


def evidence_of(row: dict[str, Any]) -> str:
    """Return what shows a claim, as text for people: its source, and what members did."""
    return f"[{row['source']}; {seen_with(row.get('claims', ()))}]"


class FormatRow(NamedTuple):
    """A format of records in internal topics that changed, as `[[format]]` has it."""

    name: str
    use: str
    exists_since: str
    changed_in: str
    what: str
    evidence: str
    reads_former_since: str
    needs_reset: bool = False
    last_old_series: str = ""
    honoured_since: str = ""
    former_is_restored: bool = False


FORMATS: Final = tuple(
    FormatRow(
        evidence=evidence_of(row),
        **{
            "reads_former_since": row["changed_in"],
            **{key: value for key, value in row.items() if key not in {"source", "claims"}},
        },
    )
    for row in RELEASE_TABLES["format"]
)
"""In order of release; those without ``last_old_series`` are kept by no setting."""


class OneWayFormat(NamedTuple):
    """What a release writes into state directories that earlier ones cannot read."""

    since: str
    what: str
    evidence: str


ONE_WAY_FORMATS: Final = tuple(
    OneWayFormat(row["since"], row["what"], evidence_of(row))
    for row in RELEASE_TABLES["one_way_format"]
)
"""What a group has to give up on the way back below a release, in order of release."""

FORMER_ANSWER: Final = " ".join(
    (RELEASE_TABLES["former_answer"][0]["what"], evidence_of(RELEASE_TABLES["former_answer"][0]))
)
"""Why a static member must not return within its session as an earlier program, with evidence."""
