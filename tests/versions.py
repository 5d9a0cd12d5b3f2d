"""Versions and releases by name: no test has Kafka's newest version as a number."""

from encoding import KAFKA_VERSIONS
from probing import NEWEST_KAFKA, RELEASES, find_release

NEWEST = KAFKA_VERSIONS[-1]
"""Kafka's newest version."""
LATER = NEWEST + 1
"""The version of a future release of Kafka, which no program knows."""
NEWEST_SERIES = find_release(NEWEST_KAFKA).series
LAST_WITH_11 = [r.name for r in RELEASES if not r.is_native and r.latest_version == 11][-1]
"""Name of the last release of Kafka that writes version 11."""
