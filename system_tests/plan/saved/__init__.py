"""Saved groups as the start of a plan: their fields, their members' releases, their files."""

from system_tests.plan.saved.files import read_saved, read_saved_topology
from system_tests.plan.saved.group import SavedGroup, saved_group, way_back
from system_tests.plan.saved.member_releases import begun_bounce, spelled_releases

__all__ = [
    "SavedGroup",
    "begun_bounce",
    "read_saved",
    "read_saved_topology",
    "saved_group",
    "spelled_releases",
    "way_back",
]
