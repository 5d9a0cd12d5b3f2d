"""Runs a Quix Streams application, unchanged, as a member of a group with this assignor."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Unpack

from assignor.adapters.confluent import Consumer
from assignor.adapters.membership import IntegratedMemberKeywords
from assignor.integrations.quix.member import QuixSession, installed
from assignor.rebalance import TasksListener
from assignor.topology import Topology

QuixKeywords = IntegratedMemberKeywords


@contextmanager
def streams_assignor(app: Any, **options: Unpack[QuixKeywords]) -> Iterator[QuixSession]:
    """Have an application run in this block with the assignor; nothing else of it changes.

    ```
    with streams_assignor(app, num_standby_replicas=1):
        app.run()
    ```

    All processes of the group must do this, each with a state directory of its own.

    Args:
        app: a `quixstreams.Application`; its dataframes may still be added in the block.
        options: as for `StreamsAssignor`.

    Yields:
        the running member; `session.client.assignor.hosts_for_key("words/default", key)` is who has
        the state of a key, with `endpoint=`.

    Raises:
        ConfigError: the release of Quix is not supported, the application is exactly-once, or an
            option is invalid; the last is raised by `app.run`.
    """

    def connect(settings: dict[str, Any], topology: Topology, listener: TasksListener) -> Consumer:
        # Quix has its strategy set to `range`, which would have the member list that assignor, too.
        own = {name: settings[name] for name in settings if name != "partition.assignment.strategy"}
        group = str(own["group.id"])
        return Consumer(
            own,
            topology=topology,
            listener=listener,
            state_dir=app.config.state_dir / ".assignor" / group,
            **options,
        )

    with installed(app, connect) as session:
        yield session
