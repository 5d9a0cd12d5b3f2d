"""Types of the keyword options of a `StreamsAssignor`, for type checkers and editors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict
from uuid import UUID

from assignor.embedding import InternalTopicSettings
from assignor.levels import LevelSource
from assignor.observe import Observer, RebalanceHook
from assignor.placement import Strategy
from assignor.rebalance import TasksListener


class MemberKeywords(TypedDict, total=False):
    """Keyword options, as type checkers see them.

    Meanings and defaults are those of the groups in `MemberOptions` and, for the last eight, of
    `assignor.AssignmentConfig`; a test compares names and types.
    """

    process_id: UUID | None
    endpoint: str | None
    client_tags: Mapping[str, str] | None
    rack: str | None
    upgrade_from: str | None
    start_version: Literal["latest"] | None
    rebalance_protocol: Literal["eager", "cooperative"]
    release: str
    listener: TasksListener | None
    observer: Observer | None
    hooks: Sequence[RebalanceHook] | None
    strategy: Strategy | str | None
    internal_topics: InternalTopicSettings | None
    state_dir: str | Path | None
    persistent_metadata_version: int | None
    message_format_version: int
    level_source: LevelSource | None
    level_poll_s: float
    hold_back: bool

    num_standby_replicas: int
    acceptable_recovery_lag: int
    max_warmup_replicas: int
    probing_rebalance_interval_ms: int
    rack_aware_assignment_strategy: str
    rack_aware_assignment_traffic_cost: int | None
    rack_aware_assignment_non_overlap_cost: int | None
    rack_aware_assignment_tags: Sequence[str]
