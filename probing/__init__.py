"""Version probing (KIP-268): decision tables of member and leader, without I/O.

A leader needs nothing of a member, and neither needs a path between releases: names of
`probing.member` and `probing.upgrades` are loaded with the first of them.
"""

import importlib
from typing import TYPE_CHECKING

from probing.leader import (
    LEADER_RULES,
    NATIVE_ANSWER_RULES,
    NEXT_VERSION_RULES,
    AnswerDecision,
    Content,
    LeaderDecision,
    MemberVersions,
    decide_answers,
)
from probing.releases import (
    NEWEST_KAFKA,
    RELEASES,
    LeaderModel,
    MemberModel,
    RebalanceProtocol,
    Release,
    ReleaseError,
    Standing,
    find_release,
)
from probing.versions import (
    ASSIGNMENT_PROTOCOL,
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    NO_REBALANCE,
    UNKNOWN_VERSION,
)

if TYPE_CHECKING:
    from probing.member import *  # noqa: F403 all its names are in `__all__`
    from probing.upgrades import *  # noqa: F403 those of its names that are in `__all__`

__all__ = [
    "ASSIGNMENT_PROTOCOL",
    "EARLIEST_NATIVE_VERSION",
    "EARLIEST_PROBEABLE_VERSION",
    "FOLLOWUP_RULES",
    "HELD_BACK",
    "LEADER_RULES",
    "MEMBER_RULES",
    "NATIVE_ANSWER_RULES",
    "NEWEST_KAFKA",
    "NEXT_VERSION_RULES",
    "NO_REBALANCE",
    "PATH_RULES",
    "RELEASES",
    "UNKNOWN_VERSION",
    "AnswerDecision",
    "AssignmentReceived",
    "Bounce",
    "BounceReason",
    "ClearSchedule",
    "Command",
    "Content",
    "Direction",
    "Event",
    "IgnoreTasks",
    "KeepVersion",
    "LeaderDecision",
    "LeaderModel",
    "LevelsPolled",
    "MemberModel",
    "MemberState",
    "MemberVersions",
    "NativeAnswer",
    "RebalanceProtocol",
    "RebalanceStarted",
    "Refuse",
    "RejoinNow",
    "Release",
    "ReleaseError",
    "ReportError",
    "ScheduleRebalance",
    "Standing",
    "SubscriptionVersion",
    "TimePassed",
    "UpgradePath",
    "WriteNextTime",
    "decide_answers",
    "find_release",
    "go_by",
    "member_ranges",
    "member_step",
    "protocol_level",
    "rejoin_for_levels",
    "start_member",
    "subscription_version",
    "upgrade_path",
]

if not TYPE_CHECKING:  # otherwise a type checker accepts every name

    def __getattr__(name: str) -> object:
        """Load a name of `probing.member` or `probing.upgrades`."""
        for package in ("probing.member", "probing.upgrades") if name in __all__ else ():
            module = importlib.import_module(package)
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
