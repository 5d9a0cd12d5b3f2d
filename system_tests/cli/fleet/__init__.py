"""``rolling-bounce plan --all``: one plan for each of many groups, as one table."""

from system_tests.cli.fleet.plans import print_fleet_plan

__all__ = ["print_fleet_plan"]
