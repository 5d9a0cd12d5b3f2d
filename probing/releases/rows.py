"""Data of the release table, from `releases.toml`: every published patch, and what each changed.

A property is written once, at the patch that introduced it, and looked up by patch; nothing is
listed per release. (Kafka keeps five lists by hand; for that reason 3.5.0 crashes on a value that
it accepts.) Each row of the file names its source.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from probing.releases.behaviour import LeaderModel, MemberModel
from probing.tables import Form, read_table

_Model = TypeVar("_Model", LeaderModel, MemberModel)
_SHOWN: Final[dict[str, Form]] = {"source": str, "shown?": str}
_CLAIMED: Final[dict[str, Form]] = {"source": str, "claims?": [str]}
_SINCE: Final[dict[str, Form]] = {"since": str, "only_in?": str, **_SHOWN}
_DATA: Final = read_table(
    "probing.releases",
    "releases.toml",
    {
        "patches": {"*": [int]},
        "version": [{"since": str, "version": int, "what": str, "native_start?": int, **_SHOWN}],
        "native_version": [{"version": int, "readable_since": int, "summary": str}],
        "native_release": [{"name": str, "native_versions": [int], "summary": str}],
        "leader": [{**_SINCE, "model": tuple(LeaderModel.__members__)}],
        "member": [{**_SINCE, "model": tuple(MemberModel.__members__)}],
        "upgrade_from": [{**_SINCE, "first?": str, "last?": str}],
        "crashing_value": [{"since": str, "until_last": str, "value": str, "why": str, **_CLAIMED}],
        "format": [
            {
                "name": str,
                "use": str,
                "exists_since": str,
                "changed_in": str,
                "needs_reset?": bool,
                "reads_former_since?": str,
                "last_old_series?": str,
                "honoured_since?": str,
                "what": str,
                **_CLAIMED,
            }
        ],
        "one_way_format": [{"since": str, "what": str, **_CLAIMED}],
        "former_answer": [{"since": str, "what": str, **_CLAIMED}],
        "issue": [{"id": str, "since": str, "fixed_in": [str], "summary": str, "source": str}],
    },
)
_RESULT: Final[dict[str, Form]] = dict.fromkeys(("claim", "old", "new", "pin", "seen"), str)
_RESULTS: Final = read_table(
    "probing.releases", "experiments.toml", {"result?": [{**_RESULT, "as_expected": bool}]}
).get("result", [])

PATCHES_BY_SERIES: Final[dict[str, tuple[int, ...]]] = {
    series: tuple(patches) for series, patches in _DATA["patches"].items()
}
"""The patches of each series, oldest series first."""

LATEST_VERSION_SINCE: Final = tuple(
    (str(row["since"]), int(row["version"]), str(row["what"])) for row in _DATA["version"]
)
"""First release that writes each version, and what the version brought."""

NATIVE_STARTS: Final[dict[int, int]] = {
    row["version"]: row["native_start"] for row in _DATA["version"] if "native_start" in row
}
"""Version of Kafka -> the version that native members start with once it exists."""


class NativeVersionRow(NamedTuple):
    """A native version; programs whose latest version is ``readable_since`` or above read it."""

    version: int
    readable_since: int
    summary: str


NATIVE_VERSIONS: Final = tuple(NativeVersionRow(**row) for row in _DATA["native_version"])


class NativeReleaseRow(NamedTuple):
    """A native release, and the native versions that it reads and writes besides Kafka's."""

    name: str
    native_versions: tuple[int, ...]
    summary: str


NATIVE_RELEASES: Final = tuple(
    NativeReleaseRow(row["name"], tuple(row["native_versions"]), row["summary"])
    for row in _DATA["native_release"]
)


def _models(
    rows: Iterable[dict[str, Any]], models: type[_Model]
) -> tuple[tuple[str, str | None, _Model], ...]:
    return tuple((row["since"], row.get("only_in"), models[row["model"]]) for row in rows)


LEADER_MODEL_SINCE: Final = _models(_DATA["leader"], LeaderModel)
MEMBER_MODEL_SINCE: Final = _models(_DATA["member"], MemberModel)
"""A row holds from its release on, until the next row; with a series, in that series only."""

UPGRADE_FROM_SINCE: Final[tuple[tuple[str, str | None, tuple[str, str] | None], ...]] = tuple(
    (row["since"], row.get("only_in"), (row["first"], row["last"]) if "last" in row else None)
    for row in _DATA["upgrade_from"]
)
"""First and last series that `upgrade.from` accepts; None if the setting does not exist."""

PIN_BY_LAST_SERIES: Final = (("0.10.0", 1), ("1.1", 2))
"""``upgrade.from`` up to this series pins this version; later series pin none."""

LAST_EAGER_SERIES: Final = "2.3"
FIRST_COOPERATIVE_PATCH: Final = "2.4.0"
FIRST_PATCH_WITHOUT_EAGER: Final = "4.0.0"
"""From this patch on, values that need the eager protocol are refused at start."""
WITHOUT_EAGER: Final = "4.0 removed the eager rebalance protocol (KAFKA-18839)"
BRIDGE_SERIES: Final = ("3.5", "3.6", "3.7", "3.8", "3.9")
"""Intermediate releases for a group at 2.3 or below on its way to 4.0."""


_MAX_PAIRS: Final = 4
NOT_RUN: Final = "by Kafka's notes, not run"


def seen_with(claims: Iterable[str]) -> str:
    """Return what members of published releases did, as text for people: `experiments.toml`.

    Args:
        claims: names of claims; one that no experiment ran adds nothing.
    """
    found: dict[str, dict[str, None]] = {}
    for row in (row for name in claims for row in _RESULTS if row["claim"] == name):
        is_pair = row["old"] != row["new"]
        pair = f"{row['old']} + {row['new']}" if is_pair else row["old"]
        pin = f" (upgrade.from={row['pin']})" if row["pin"] else ""
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
    needs_reset: bool
    last_old_series: str
    honoured_since: str
    reads_former_since: str


FORMATS: Final = tuple(
    FormatRow(
        row["name"],
        row["use"],
        row["exists_since"],
        row["changed_in"],
        row["what"],
        evidence_of(row),
        row.get("needs_reset", False),
        row.get("last_old_series", ""),
        row.get("honoured_since", ""),
        row.get("reads_former_since", row["changed_in"]),
    )
    for row in _DATA["format"]
)
"""In order of release; those without ``last_old_series`` are kept by no setting."""

KEPT_FORMATS: Final = tuple(row for row in FORMATS if row.last_old_series)
"""Those that ``upgrade.from`` keeps."""


class OneWayFormat(NamedTuple):
    """What a release writes into state directories that earlier ones cannot read."""

    since: str
    what: str
    evidence: str


ONE_WAY_FORMATS: Final = tuple(
    OneWayFormat(row["since"], row["what"], evidence_of(row)) for row in _DATA["one_way_format"]
)
"""What a group has to give up on the way back below a release, in order of release."""

FORMER_ANSWER: Final = " ".join(
    (_DATA["former_answer"][0]["what"], evidence_of(_DATA["former_answer"][0]))
)
"""Why a static member must not return within its session as an earlier program, with evidence."""

CRASHING_VALUES: Final = tuple(
    (row["since"], row["until_last"], row["value"], row["why"]) for row in _DATA["crashing_value"]
)
"""(first patch, last patch, value, why): accepted by the config, fatal in the assignor."""


class IssueRow(NamedTuple):
    """A known issue: open from ``since`` until the patch of ``fixed_in`` on the same branch."""

    id: str
    since: str
    fixed_in: tuple[str, ...]
    summary: str


ISSUES: Final = tuple(
    IssueRow(row["id"], row["since"], tuple(row["fixed_in"]), row["summary"])
    for row in _DATA["issue"]
)
