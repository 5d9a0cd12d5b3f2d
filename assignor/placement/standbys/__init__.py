"""Standby copies: their clients, their spread over tags and racks, and the load after a crash."""

from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.failover_load import even_out
from assignor.placement.standbys.final_copies import Standbys, target_standbys, too_few_clients
from assignor.placement.standbys.tag_shortfalls import tag_warnings

__all__ = [
    "Spread",
    "Standbys",
    "even_out",
    "tag_warnings",
    "target_standbys",
    "too_few_clients",
]
