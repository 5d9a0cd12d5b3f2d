"""The poll loop of docs/clients.md, run on an embedded broker."""

import threading

from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.confluent.harness import committed, fill, servers_of
from tests.assignor.embedding.clusters import until
from tests.docs.pages import ROOT, blocks


def test_the_poll_loop_of_the_page_processes_commits_and_ends():
    [block] = [each for each in blocks(ROOT / "docs/clients.md") if "def count_words" in each.body]
    page, stop, processed = {}, threading.Event(), []
    exec(compile(block.body, str(block), "exec"), page)  # noqa: S102 a page of this project
    with running_broker(BrokerConfig(topics={"words": 4})) as broker:
        fill(broker, 8)
        arguments = (servers_of(broker), lambda message: processed.append(message.value()), stop)
        thread = threading.Thread(target=page["count_words"], args=arguments)
        thread.start()
        try:
            until(lambda: len(processed) == 8)
        finally:
            stop.set()
            thread.join()
        assert committed(broker, group="confluent-words") == dict.fromkeys(range(4), 2)
        assert broker.groups()["confluent-words"].members == ()
