"""Junk in a group's topics: levels and reached versions are read beside it, and it is named."""

import logging

import msgpack
import pytest
from click.testing import CliRunner

from assignor.adapters.admin import FeatureTopic, GroupLevels, ReachedTopic, open_admin
from assignor.adapters.admin.client import Target
from assignor.adapters.admin.compacted_topic import CompactedTopic
from assignor.cli import main
from assignor.examples.topologies import FIRST, SECOND
from assignor.levels.log import Note, reached_record, reached_topic_name, topic_name
from assignor.topology import content_fingerprint
from probing.features import ASSIGNMENT_PROTOCOL
from probing.topologies import MOST_ENTRIES, Reached
from system_tests.broker import running_broker

JUNK = 10_000
FORMS = [content_fingerprint(t.subtopologies("g")[0]) for t in (FIRST, SECOND)]
MEMORY = dict.fromkeys(FORMS, Reached(3, 2))


def junk_records(reached):
    forms = [number.to_bytes(8, "big") for number in range(JUNK)]
    chunks = [forms[start : start + MOST_ENTRIES] for start in range(0, JUNK, MOST_ENTRIES)]
    return [reached_record(dict.fromkeys(c, reached), nonce=f"{n}") for n, c in enumerate(chunks)]


@pytest.mark.usefixtures("clock")
def test_junk_in_the_topics_of_a_group_hides_nothing_and_is_logged_once(caplog):
    with running_broker() as broker:
        servers = broker.bootstrap_servers[0]
        with open_admin(Target(servers=(servers,), settings={}, timeout_ms=60_000)) as admin:
            levels, reached = FeatureTopic(admin, "g"), ReachedTopic(admin, "g")
            levels.change(levels.look(), {ASSIGNMENT_PROTOCOL: 11}, Note(who="ada"), {})
            reached.remember(MEMORY)
            junk = msgpack.packb([1, levels.look().head, b"junk"])
            CompactedTopic(admin, topic_name("g")).write([(b"junk", junk)])
            topic = CompactedTopic(admin, reached_topic_name("g"))
            topic.write([(b"junk", b"junk"), *junk_records(Reached(9, 2**31 - 1))])

            source = GroupLevels(servers, "g", timeout_ms=60_000)
            with caplog.at_level(logging.WARNING, logger="assignor.adapters.admin.level_sources"):
                for _ in range(2):
                    assert source().levels == {ASSIGNMENT_PROTOCOL: 11}
                    found = source.reached()
                    assert {form: found[form] for form in FORMS} == MEMORY
            logged = [row.message for row in caplog.records if "level_sources" in row.name]
            assert [message.partition(" and is ignored")[0] for message in logged] == [
                "record 1 of g-feature-levels is no feature log record",
                "record 1 of g-reached-topologies is no memory of topologies",
            ]

            command = ["features", "downgrade-topology", "--group", "g", "--yes"]
            command += ["--topology", "assignor.examples.topologies:FIRST"]
            where = ["--bootstrap-server", servers, "--timeout", "60"]
            found = CliRunner().invoke(main, [*command, *where])
            assert (found.exit_code, found.stderr.count("record 1 of g-reached")) == (0, 1)
            kept = source.reached()
            assert {form: kept[form] for form in FORMS[:1]} == {FORMS[0]: Reached(10, 1)}
