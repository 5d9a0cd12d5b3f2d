"""Forms of subtopologies in a group with several topologies: who carries what, and what runs."""

from assignor.rebalance.forms.asking import NO_TOPOLOGIES, TopologyMemory
from assignor.rebalance.forms.carried import (
    carried_from,
    program_fingerprint,
)
from assignor.rebalance.forms.group import GroupTopologies, read_topologies
from assignor.rebalance.forms.numbering import NOT_HERE
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.forms.reports import (
    reached_of,
    reached_rows,
    report_of,
)
from assignor.rebalance.forms.selection import (
    Selection,
    restricted,
    select_tasks,
    selected_plan,
)
from assignor.rebalance.forms.translation import (
    in_group_numbers,
    renumbered,
)
from assignor.rebalance.forms.waiting import retired_sentences

__all__ = [
    "NOT_HERE",
    "NO_TOPOLOGIES",
    "GroupTopologies",
    "OwnTopology",
    "Selection",
    "TopologyMemory",
    "carried_from",
    "in_group_numbers",
    "program_fingerprint",
    "reached_of",
    "reached_rows",
    "read_topologies",
    "renumbered",
    "report_of",
    "restricted",
    "retired_sentences",
    "select_tasks",
    "selected_plan",
]
