import pytest

from assignor.errors import ConfigError
from assignor.rebalance.endpoints import checked_endpoint, parse_endpoint
from encoding import HostInfo


@pytest.mark.parametrize(
    ("endpoint", "host", "port"),
    [
        ("localhost:80", "localhost", 80),
        ("http://host:80", "host", 80),
        ("[fe80::1]:8080", "fe80::1", 8080),
        ("fe80::1:8080", "fe80::1", 8080),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
        ("h" * 255 + ":1", "h" * 255, 1),
    ],
)
def test_endpoints_are_read_as_kafka_reads_them(endpoint, host, port):
    assert parse_endpoint(endpoint) == HostInfo(host, port)
    assert checked_endpoint(endpoint) == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "localhost",
        "localhost:j87",
        "localhost:",
        ":80",
        "h:0",
        "h:65536",
        "h:99999999999",
        "h:" + "1" * 5000,
        "h:٣",
        "h:80\n",
        "h" * 256 + ":1",
        "é" * 40_000 + ":1",
        "a/b:80",
        "h:-1",
    ],
)
def test_an_endpoint_that_nobody_can_reach_is_none_and_refused_where_a_user_gives_it(endpoint):
    assert parse_endpoint(endpoint) is None
    with pytest.raises(ConfigError, match="host:port") as caught:
        checked_endpoint(endpoint)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("endpoint", [None, ""])
def test_no_endpoint_is_none_as_in_kafka(endpoint):
    assert checked_endpoint(endpoint) is None
