"""Each argument of the loops and of `commit_next` of each client, with values of a wrong kind."""

import asyncio
import inspect
from contextlib import AsyncExitStack

import pytest

from assignor import ConfigError, TaskStores
from assignor.adapters import aiokafka, confluent, kafka_python
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.rebalance.groups import TOPOLOGY

GROUP = "app"
CALLS = {
    "kafka-python": (kafka_python.polled, kafka_python.run_tasks, kafka_python.commit_next),
    "aiokafka": (aiokafka.polled, aiokafka.run_tasks, aiokafka.commit_next),
    "confluent-kafka": (confluent.run_tasks,),
}
OPTIONAL = {"assignor", "stop", "next_offsets"}  # None is right


def wrong_calls(consumers, stores):
    """Yield a function, an argument that it has, and arguments with a wrong value of this one."""
    wrong = [None, 5, "x", [], float("nan"), object(), type(stores), *consumers.values()]
    for client, consumer in consumers.items():
        for call in CALLS[client]:
            names = inspect.signature(call).parameters
            right = {"consumer": consumer, "stores": stores, "handle": print}
            given = {name: value for name, value in right.items() if name in names}
            for name in names:
                is_right = [None] if name in OPTIONAL else []
                is_right += [5] if name.startswith(("timeout", "max_")) else []
                for value in wrong:
                    is_class = name == "handle" and inspect.isclass(value)
                    is_own = name == "consumer" and value is consumer
                    if not (value in is_right or is_class or is_own):
                        yield call, name, given | {name: value}


async def first(result):
    """Await what a call returns, or what it yields first."""
    if inspect.isgenerator(result):
        return next(result)
    if inspect.isasyncgen(result):
        return await anext(result)
    return await result if inspect.isawaitable(result) else result


@pytest.mark.usefixtures("clock")
def test_a_value_of_a_wrong_kind_is_a_config_error_that_names_what_to_give():
    async def check(servers):
        async with AsyncExitStack() as stack:
            stores = TaskStores(TOPOLOGY, [], application_id=GROUP, access=None)
            stack.callback(stores._local.close)
            of_group = {"group_id": GROUP, "bootstrap_servers": servers}
            own = kafka_python.streams_consumer(TOPOLOGY, listener=stores, **of_group)
            stack.callback(own.close)
            config = {"bootstrap.servers": ",".join(servers), "group.id": GROUP}
            config["enable.auto.commit"] = False
            member = confluent.Consumer(config, topology=TOPOLOGY, listener=stores)
            stack.callback(member.close)
            awaited = aiokafka.streams_consumer(TOPOLOGY, listener=stores, **of_group)
            await stack.enter_async_context(awaited)
            consumers = dict(zip(CALLS, (own, awaited, member), strict=True))
            for call, name, given in wrong_calls(consumers, stores):
                with pytest.raises(ConfigError) as raised:
                    await asyncio.wait_for(first(call(**given)), 60)
                says = str(raised.value)
                expected = ("is not a", "has no ") if name == "consumer" else (f"{name}=",)
                assert any(words in says for words in expected), (call, name, says)

    with running_broker(BrokerConfig(topics={"lines": 1})) as broker:
        asyncio.run(check(broker.bootstrap_servers))
