"""What programs may import from `assignor`, which loads this module with the first name.

Type checkers read it, too. Names that have moved are in `assignor.MOVED`.
"""

from assignor.config import AssignmentConfig as AssignmentConfig
from assignor.config import config_from_mapping as config_from_mapping
from assignor.embedding import BYTES as BYTES
from assignor.embedding import JSON as JSON
from assignor.embedding import TEXT as TEXT
from assignor.embedding import ClusterUnavailable as ClusterUnavailable
from assignor.embedding import DictStore as DictStore
from assignor.embedding import InternalTopicSettings as InternalTopicSettings
from assignor.embedding import KeyHosts as KeyHosts
from assignor.embedding import MemberStopped as MemberStopped
from assignor.embedding import Partitioner as Partitioner
from assignor.embedding import ProcessDirectory as ProcessDirectory
from assignor.embedding import RunningTasks as RunningTasks
from assignor.embedding import SqliteStore as SqliteStore
from assignor.embedding import StateDirectoryLocked as StateDirectoryLocked
from assignor.embedding import TaskState as TaskState
from assignor.embedding import TaskStores as TaskStores
from assignor.embedding import UnreadableRecord as UnreadableRecord
from assignor.embedding import partition_for_key as partition_for_key
from assignor.embedding.bad_records import BadRecord as BadRecord
from assignor.embedding.bad_records import BadRecordAction as BadRecordAction
from assignor.embedding.bad_records import BadRecordStage as BadRecordStage
from assignor.embedding.bad_records import DeadLetter as DeadLetter
from assignor.errors import ConfigError as ConfigError
from assignor.errors import CopartitionMismatch as CopartitionMismatch
from assignor.errors import LeaderRefused as LeaderRefused
from assignor.errors import MemberRefused as MemberRefused
from assignor.errors import MissingSourceTopic as MissingSourceTopic
from assignor.errors import TaskAssignmentError as TaskAssignmentError
from assignor.errors import TopologyError as TopologyError
from assignor.levels import LevelSource as LevelSource
from assignor.observe import LoggingHook as LoggingHook
from assignor.observe import Observation as Observation
from assignor.observe import Observer as Observer
from assignor.observe import Outcome as Outcome
from assignor.observe import RebalanceEnd as RebalanceEnd
from assignor.observe import RebalanceHook as RebalanceHook
from assignor.observe import RebalanceStart as RebalanceStart
from assignor.placement import LAG_RUNNING as LAG_RUNNING
from assignor.placement import LAG_UNKNOWN as LAG_UNKNOWN
from assignor.placement import NOBODY as NOBODY
from assignor.placement import AssignmentError as AssignmentError
from assignor.placement import ClientInput as ClientInput
from assignor.placement import ClientTasks as ClientTasks
from assignor.placement import GroupState as GroupState
from assignor.placement import InvalidAssignment as InvalidAssignment
from assignor.placement import Strategy as Strategy
from assignor.placement import TaskAssignment as TaskAssignment
from assignor.placement import assignment_from as assignment_from
from assignor.placement import by_client as by_client
from assignor.placement import by_task as by_task
from assignor.placement import client_inputs as client_inputs
from assignor.placement import default_standbys as default_standbys
from assignor.placement import fallback_prior as fallback_prior
from assignor.placement import find_strategy as find_strategy
from assignor.placement import group_state as group_state
from assignor.placement import high_availability as high_availability
from assignor.placement import identity as identity
from assignor.placement import named_strategy as named_strategy
from assignor.placement import nearest_caught_up_client as nearest_caught_up_client
from assignor.placement import quotas as quotas
from assignor.placement import run_strategy as run_strategy
from assignor.placement import sticky as sticky
from assignor.placement import thread_bands as thread_bands
from assignor.placement import validate as validate
from assignor.placement.racks import (
    optimize_rack_aware_active_tasks as optimize_rack_aware_active_tasks,
)
from assignor.placement.racks import (
    optimize_rack_aware_standby_tasks as optimize_rack_aware_standby_tasks,
)
from assignor.placement.racks import traffic_of as traffic_of
from assignor.rebalance import GroupAnswer as GroupAnswer
from assignor.rebalance import GroupMember as GroupMember
from assignor.rebalance import LeaderKnowledge as LeaderKnowledge
from assignor.rebalance import LeaderSettings as LeaderSettings
from assignor.rebalance import MemberIdentity as MemberIdentity
from assignor.rebalance import PartitionsByTask as PartitionsByTask
from assignor.rebalance import Routing as Routing
from assignor.rebalance import StreamsMember as StreamsMember
from assignor.rebalance import TasksHeld as TasksHeld
from assignor.rebalance import TasksListener as TasksListener
from assignor.rebalance import assign_group as assign_group
from assignor.stores import OffloadedPlans as OffloadedPlans
from assignor.stores import PlanStore as PlanStore
from assignor.stores import StoreError as StoreError
from assignor.topology import RepartitionTopic as RepartitionTopic
from assignor.topology import Subtopology as Subtopology
from assignor.topology import TaskPlan as TaskPlan
from assignor.topology import Topology as Topology
from assignor.topology import plan_tasks as plan_tasks
from encoding import HostInfo as HostInfo
from encoding import RebalanceError as RebalanceError
from encoding import TaskId as TaskId
from encoding import TopicPartition as TopicPartition
