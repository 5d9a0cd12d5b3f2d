"""Plans of streams groups (KIP-1071): the move of a classic group there, and new releases."""

from system_tests.plan.streams.brokers import reports_offsets
from system_tests.plan.streams.move import (
    INITIAL_DELAY_MS,
    RESTORE_RATE,
    TARGET,
    MoveStep,
    StreamsMove,
    plan_streams_move,
)
from system_tests.plan.streams.restored import Restored, restored_by_broker
from system_tests.plan.streams.upgrade import plan_streams_upgrade

__all__ = [
    "INITIAL_DELAY_MS",
    "RESTORE_RATE",
    "TARGET",
    "MoveStep",
    "Restored",
    "StreamsMove",
    "plan_streams_move",
    "plan_streams_upgrade",
    "reports_offsets",
    "restored_by_broker",
]
