"""Versions and releases by name: no test has Kafka's newest version as a number."""

from encoding import KAFKA_VERSIONS
from probing import NEWEST_KAFKA, find_release

NEWEST = KAFKA_VERSIONS[-1]
"""Kafka's newest version."""
LATER = NEWEST + 1
"""The version of a future release of Kafka, which no program knows."""
NEWEST_SERIES = find_release(NEWEST_KAFKA).series
