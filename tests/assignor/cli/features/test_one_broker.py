"""`assignor features describe` of one broker of an embedded cluster."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli import main
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.timeout(600)]


def test_a_broker_is_asked_by_its_node_id_and_an_unknown_one_is_named():
    with running_broker(BrokerConfig(nodes=2)) as broker:
        where = ("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120")

        def describe(*options):
            found = CliRunner().invoke(main, ["features", "describe", *where, *options])
            return found.exit_code, found.stdout, found.stderr

        for node in (1, 2):
            status, out, err = describe("--format", "json", "--node-id", str(node))
            assert (status, err) == (0, "")
            assert json.loads(out)["source"].startswith(f"broker {node} at ")
        status, out, err = describe("--node-id", "77")
        assert (status, out) == (3, "")
        assert "has no broker 77 now; it has 1, 2" in err
        for more in (("--group", "g"), ("--from-controller",)):
            assert describe("--node-id", "1", *more)[0] == 2
        assert describe("--node-id", "0", "--from-controller")[0] == 2
