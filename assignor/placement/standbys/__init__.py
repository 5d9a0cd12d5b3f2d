"""Standby copies: who keeps which, what keeps them apart, and what a crash would bring."""

from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.failover_load import even_out
from assignor.placement.standbys.final_copies import Standbys, target_standbys
from assignor.placement.standbys.tag_shortfalls import tag_warnings

__all__ = [
    "Spread",
    "Standbys",
    "even_out",
    "tag_warnings",
    "target_standbys",
]
