"""Requests of the tests of supervised admin clients: to a node, the controller, a coordinator."""

import asyncio
import contextlib
from uuid import uuid4

from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError as AIOKafkaError
from kafka.errors import KafkaError

from tests.assignor.adapters.rebootstrap.clusters import TOPIC

GROUP = "g"


def asked_of(admin):
    """Send requests to a node, the controller and a coordinator."""
    admin.create_topics({f"made-{uuid4().hex}": {"num_partitions": 1, "replication_factor": 1}})
    admin.list_group_offsets({GROUP: None})
    return TOPIC in admin.list_topics()


def answers(admin):
    with contextlib.suppress(KafkaError):
        return asked_of(admin)
    return False


async def asked_of_aiokafka(admin):
    """As `asked_of`, for aiokafka."""
    await admin.create_topics([NewTopic(f"made-{uuid4().hex}", 1, 1)])
    await admin.list_consumer_group_offsets(GROUP)
    return TOPIC in await admin.list_topics()


async def answered(admin):
    """Repeat the requests until they succeed."""
    while True:
        with contextlib.suppress(AIOKafkaError, TimeoutError):
            return await asked_of_aiokafka(admin)
        await asyncio.sleep(0.1)
