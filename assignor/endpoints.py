"""Endpoints of members that serve interactive queries (`application.server`)."""

from encoding import HostInfo


def parse_endpoint(endpoint: str) -> HostInfo | None:
    """`host:port` (IPv6 hosts in brackets) as a pair, or None when it is not one."""
    host, _, port = endpoint.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit():
        return None
    return HostInfo(host, int(port))
