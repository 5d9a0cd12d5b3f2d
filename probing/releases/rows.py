"""Data of the release table, from `releases.toml`: every published patch, and what each changed.

A property is written once, at the patch that introduced it, and looked up by patch; nothing is
listed per release. (Kafka keeps five lists by hand; for that reason 3.5.0 crashes on a value that
it accepts.) Each row of the file names its source.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

from probing.releases.behaviour import LeaderModel, MemberModel
from probing.tables import Form, read_table

_Model = TypeVar("_Model", LeaderModel, MemberModel)
_SHOWN: Final[dict[str, Form]] = {"source": str, "shown?": str}
_CLAIMED: Final[dict[str, Form]] = {"source": str, "claims?": [str]}
_SINCE: Final[dict[str, Form]] = {"since": str, "only_in?": str, **_SHOWN}
RELEASE_TABLES: Final = read_table(
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
                "former_is_restored?": bool,
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
PATCHES_BY_SERIES: Final[dict[str, tuple[int, ...]]] = {
    series: tuple(patches) for series, patches in RELEASE_TABLES["patches"].items()
}
"""The patches of each series, oldest series first."""

LATEST_VERSION_SINCE: Final = tuple(
    (str(row["since"]), int(row["version"]), str(row["what"])) for row in RELEASE_TABLES["version"]
)
"""First release that writes each version, and what the version brought."""


class NativeVersionRow(NamedTuple):
    """A native version; programs whose latest version is ``readable_since`` or above read it."""

    version: int
    readable_since: int
    summary: str


NATIVE_VERSIONS: Final = tuple(NativeVersionRow(**row) for row in RELEASE_TABLES["native_version"])


class NativeReleaseRow(NamedTuple):
    """A native release, and the native versions that it reads and writes besides Kafka's."""

    name: str
    native_versions: tuple[int, ...]
    summary: str


NATIVE_RELEASES: Final = tuple(
    NativeReleaseRow(row["name"], tuple(row["native_versions"]), row["summary"])
    for row in RELEASE_TABLES["native_release"]
)


def _models(
    rows: Iterable[dict[str, Any]], models: type[_Model]
) -> tuple[tuple[str, str | None, _Model], ...]:
    return tuple((row["since"], row.get("only_in"), models[row["model"]]) for row in rows)


LEADER_MODEL_SINCE: Final = _models(RELEASE_TABLES["leader"], LeaderModel)
MEMBER_MODEL_SINCE: Final = _models(RELEASE_TABLES["member"], MemberModel)
"""A row holds from its release on, until the next row; with a series, in that series only."""

UPGRADE_FROM_SINCE: Final[tuple[tuple[str, str | None, tuple[str, str] | None], ...]] = tuple(
    (row["since"], row.get("only_in"), (row["first"], row["last"]) if "last" in row else None)
    for row in RELEASE_TABLES["upgrade_from"]
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

KEPT_FORMATS: Final = tuple(
    (row["name"], row["last_old_series"], row["honoured_since"])
    for row in RELEASE_TABLES["format"]
    if "last_old_series" in row
)
"""(name, last series that writes it, first patch that keeps it) of what ``upgrade.from`` keeps."""

CRASHING_VALUES: Final = tuple(
    (row["since"], row["until_last"], row["value"], row["why"])
    for row in RELEASE_TABLES["crashing_value"]
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
    for row in RELEASE_TABLES["issue"]
)
