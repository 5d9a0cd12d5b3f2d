"""Predictions: the effect of scenarios on groups, and simulated rolling bounces."""

from spark_assign.whatif.bounces import SIMULATED, simulated
from spark_assign.whatif.job import WHATIF, what_if
from spark_assign.whatif.measures import RESTORE_RATE
from spark_assign.whatif.report import has_plots, page_of, print_summary, short, summary_of
from spark_assign.whatif.scenarios import KINDS, parse_scenarios

__all__ = [
    "KINDS",
    "RESTORE_RATE",
    "SIMULATED",
    "WHATIF",
    "has_plots",
    "page_of",
    "parse_scenarios",
    "print_summary",
    "short",
    "simulated",
    "summary_of",
    "what_if",
]
