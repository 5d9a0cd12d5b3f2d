"""A commit that is answered while the group rebalances does not end the membership.

aiokafka's own code sends the commit and takes the answer; the coordinator around it is a fake.
"""

import asyncio
import gc
from types import MethodType, SimpleNamespace

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import IllegalGenerationError, RequestTimedOutError, UnknownMemberIdError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from assignor.adapters.aiokafka.coordinator import CoordinatorHooks
from assignor.adapters.aiokafka.port import AiokafkaPort
from tests.assignor.adapters.members import AnyConsumer

PARTITION = TopicPartition("words", 0)


class Coordinator:
    """What the commit uses of aiokafka's coordinator; `meanwhile` runs before the answer."""

    def __init__(self, error, meanwhile):
        self.group_id, self.coordinator_id = "app", 0
        self.generation, self.member_id = 7, "one"
        self._performed_join_prepare = False
        self._rejoin_needed_fut = asyncio.get_running_loop().create_future()
        self._error, self._meanwhile = error, meanwhile
        for name in ("_do_commit_offsets", "reset_generation", "request_rejoin"):
            setattr(self, name, MethodType(getattr(GroupCoordinator, name), self))

    async def _send_req(self, request):
        self._meanwhile(self)
        return SimpleNamespace(topics=[("words", [(0, self._error.errno)])])

    async def _on_join_complete(self, *_):
        pass

    async def _perform_assignment(self, response):
        return response


def join(coordinator):
    coordinator._performed_join_prepare = True


def join_and_take(coordinator):
    coordinator.generation = 8


def nothing(_):
    pass


def commit(error, meanwhile):
    """Commit through the hooks; return generation and member id afterwards."""

    async def run():
        coordinator = Coordinator(error, meanwhile)
        consumer = AnyConsumer(_coordinator=coordinator)
        CoordinatorHooks(AiokafkaPort(consumer), lambda _: None, lambda: None).install()
        with pytest.raises(error):
            await coordinator._do_commit_offsets(None, {PARTITION: OffsetAndMetadata(1, "")})
        return coordinator.generation, coordinator.member_id

    return asyncio.run(run())


@pytest.mark.parametrize("error", [IllegalGenerationError, UnknownMemberIdError])
def test_librdkafka_4059_a_commit_during_a_rebalance_keeps_the_member(error):
    assert commit(error, join) == (7, "one")
    assert commit(error, join_and_take) == (8, "one")


@pytest.mark.parametrize("error", [IllegalGenerationError, UnknownMemberIdError])
def test_a_member_that_the_group_removed_joins_anew(error):
    assert commit(error, nothing) == (-1, "")


def test_a_commit_whose_caller_has_gone_ends_without_an_error_of_asyncio():
    """As at a broker that hangs: `commit_next` returns after `request_timeout_ms`."""
    unretrieved = []

    async def run():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: unretrieved.append(context["message"]))
        coordinator = Coordinator(RequestTimedOutError, nothing)
        coordinator.coordinator_dead = lambda: None
        asked, ends = loop.create_future(), loop.create_future()

        async def hang(request):
            asked.set_result(None)
            await ends
            raise RequestTimedOutError

        coordinator._send_req = hang
        consumer = AnyConsumer(_coordinator=coordinator)
        CoordinatorHooks(AiokafkaPort(consumer), lambda _: None, lambda: None).install()
        offsets = {PARTITION: OffsetAndMetadata(1, "")}
        caller = asyncio.shield(coordinator._do_commit_offsets(None, offsets))
        await asked
        caller.cancel()
        ends.set_result(None)
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(run())
    gc.collect()
    assert unretrieved == []
