"""Forms of subtopologies in a group with several topologies: who carries what, and what runs."""

from assignor.rebalance.forms.asking import NO_TOPOLOGIES, TopologyMemory
from assignor.rebalance.forms.carried import (
    carried_from,
    fingerprint,
    plain,
    program_fingerprint,
    rows_of,
)
from assignor.rebalance.forms.group import GroupTopologies, read_topologies
from assignor.rebalance.forms.numbering import NOT_HERE
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.forms.reports import (
    TopologyReport,
    reached_of,
    reached_rows,
    report_of,
)
from assignor.rebalance.forms.selection import (
    Selection,
    Share,
    restricted,
    select_tasks,
    selected_plan,
)
from assignor.rebalance.forms.translation import (
    in_group_numbers,
    in_own_numbers,
    own_numbers,
    renumbered,
)
from assignor.rebalance.forms.waiting import retired_sentences

__all__ = [
    "NOT_HERE",
    "NO_TOPOLOGIES",
    "GroupTopologies",
    "OwnTopology",
    "Selection",
    "Share",
    "TopologyMemory",
    "TopologyReport",
    "carried_from",
    "fingerprint",
    "in_group_numbers",
    "in_own_numbers",
    "own_numbers",
    "plain",
    "program_fingerprint",
    "reached_of",
    "reached_rows",
    "read_topologies",
    "renumbered",
    "report_of",
    "restricted",
    "retired_sentences",
    "rows_of",
    "select_tasks",
    "selected_plan",
]
