"""Endpoints of members that answer interactive queries: `host:port`, as Kafka reads them."""

import re
from collections.abc import Mapping
from functools import lru_cache

from assignor.errors import ConfigError
from encoding import HostInfo, PartitionsByHost, TaskId, TopicPartition, shown

LONGEST_HOST = 255
"""Characters of a host, as in the DNS."""

HIGHEST_PORT = 65_535

# `Utils.HOST_PORT_PATTERN` of Kafka, with bounds: an optional scheme, IPv6 hosts in brackets.
_ENDPOINT = re.compile(
    rf"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]{{1,{LONGEST_HOST}}})\]?:([0-9]{{1,9}})"
)
_LONGEST = 2 * LONGEST_HOST


@lru_cache(maxsize=4096)  # few endpoints, read again at every rebalance
def parse_endpoint(endpoint: str) -> HostInfo | None:
    """Return host and port of `host:port`, or None for an invalid endpoint.

    Hosts have up to 255 of the characters that Kafka allows, ports lie between 1 and 65,535. A
    scheme in front is dropped, as Kafka does: `http://orders-1:80` is port 80 of `orders-1`.
    """
    if len(endpoint) > _LONGEST:
        return None
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        return None
    port = int(match[2])
    return HostInfo(match[1], port) if 1 <= port <= HIGHEST_PORT else None


def checked_endpoint(endpoint: str | None) -> str | None:
    """Return a user's endpoint after a check; empty is None, as in Kafka.

    Raises:
        ConfigError: the endpoint is no `host:port`; Kafka refuses it, too.
    """
    if endpoint is None or endpoint == "":
        return None
    if isinstance(endpoint, str) and parse_endpoint(endpoint) is not None:
        return endpoint
    raise ConfigError(
        f"endpoint={shown(repr(endpoint))} is not host:port: give a host of up to {LONGEST_HOST}"
        f" characters and a port between 1 and {HIGHEST_PORT}, such as 'orders-1:8080'"
    )


def host_map(
    endpoint_by_member: Mapping[str, str],
    tasks_by_member: Mapping[str, tuple[TaskId, ...]],
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]],
) -> PartitionsByHost:
    """Return Kafka's map: every endpoint of the group with the partitions that it serves."""
    hosts: dict[HostInfo, set[TopicPartition]] = {}
    for member, endpoint in sorted(endpoint_by_member.items()):
        host = parse_endpoint(endpoint)
        if host is not None:
            found = hosts.setdefault(host, set())
            for task in tasks_by_member.get(member, ()):
                found.update(partitions_by_task[task])
    return PartitionsByHost(hosts)
