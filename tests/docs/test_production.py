"""docs/production.md: its log during an outage."""

import logging

import pytest

from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.kafka_python.test_health import (  # the application of the tests
    RECORDS,
    application,
    running,
    until,
    write,
)
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.usefixtures("clock")
NAMES = ("kafka", "kafka.net", "kafka.cluster", "kafka.coordinator")


@pytest.fixture
def _levels():
    before = {name: logging.getLogger(name).level for name in NAMES}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.usefixtures("_levels")
def test_an_outage_is_a_line_of_this_project_and_none_of_the_client(tmp_path, caplog):
    [block] = [each for each in blocks(ROOT / "docs/production.md") if "basicConfig" in each.body]
    exec(compile(block.body, str(block), "exec"), {})  # noqa: S102 a page of this project
    with running_broker(BrokerConfig(topics={"in": 2})) as broker:
        write(broker, [b"x"] * RECORDS)
        with application(broker, tmp_path, session_timeout_ms=1000) as app, running(app):
            until(app.ready)
            caplog.clear()
            port = int(broker.bootstrap_servers[0].rpartition(":")[2])
            broker.stop_node(1)
            until(lambda: app.health().problems)
            broker.start_node(1, port=port)
            until(app.ready)
            names = [record.name for record in caplog.records]
    assert not [name for name in names if name.startswith("kafka")]
    assert "assignor.adapters.rebootstrap.supervisor" in names
