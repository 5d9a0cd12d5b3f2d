"""Keyword options of a member, as type checkers see them.

`python -m docs.generate` writes this module from `options.py` and `AssignmentConfig`, which have
the meanings, defaults and checks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict
from uuid import UUID

from assignor.embedding import InternalTopicSettings
from assignor.levels import LevelSource
from assignor.observe import Observer, RebalanceHook
from assignor.placement import Strategy
from assignor.rebalance import TasksListener


class IntegratedMemberKeywords(TypedDict, total=False):
    """Of a member inside another library."""

    endpoint: str | None
    client_tags: Mapping[str, str] | None
    rack: str | None
    rebalance_protocol: Literal["eager", "cooperative"]
    observer: Observer | None
    hooks: Sequence[RebalanceHook] | None
    strategy: Strategy | str | None
    num_standby_replicas: int
    acceptable_recovery_lag: int
    max_warmup_replicas: int
    probing_rebalance_interval_ms: int
    rack_aware_assignment_strategy: str
    rack_aware_assignment_traffic_cost: int | None
    rack_aware_assignment_non_overlap_cost: int | None
    rack_aware_assignment_tags: Sequence[str]


class ApplicationMemberKeywords(IntegratedMemberKeywords, total=False):
    """Of a member whose listener is its state stores."""

    process_id: UUID | None
    upgrade_from: str | None
    start_version: Literal["latest"] | None
    release: str
    internal_topics: InternalTopicSettings | None
    state_dir: str | Path | None
    persistent_metadata_version: int | None
    message_format_version: int
    level_source: LevelSource | None
    level_poll_s: float
    hold_back: bool


class MemberKeywords(ApplicationMemberKeywords, total=False):
    """Of a member."""

    listener: TasksListener | None
