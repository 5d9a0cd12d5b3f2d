"""Harness of the end-to-end tests: JVM members, real tools, shared state. Not shipped."""

from system_tests.support.describe import DescribedGroup, describe_group
from system_tests.support.group import RealGroup
from system_tests.support.member import NotInTime, RealMember

__all__ = [
    "DescribedGroup",
    "NotInTime",
    "RealGroup",
    "RealMember",
    "describe_group",
]
