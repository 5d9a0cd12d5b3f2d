"""Runs a Quix Streams application, unchanged, as a member of a group with this assignor."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, Unpack

from assignor.adapters.confluent import Consumer
from assignor.integrations.quix.member import QuixSession, installed
from assignor.observe import Observer, RebalanceHook
from assignor.placement import Strategy
from assignor.rebalance import TasksListener
from assignor.topology import Topology


class QuixKeywords(TypedDict, total=False):
    """Keyword options of `streams_assignor`, with the meanings of `StreamsAssignor`'s options.

    The last eight are settings of `assignor.AssignmentConfig`.
    """

    endpoint: str | None
    client_tags: Mapping[str, str] | None
    rack: str | None
    rebalance_protocol: Literal["eager", "cooperative"]
    observer: Observer | None
    hooks: Sequence[RebalanceHook] | None
    strategy: Strategy | str | None

    num_standby_replicas: int
    acceptable_recovery_lag: int
    max_warmup_replicas: int
    probing_rebalance_interval_ms: int
    rack_aware_assignment_strategy: str
    rack_aware_assignment_traffic_cost: int | None
    rack_aware_assignment_non_overlap_cost: int | None
    rack_aware_assignment_tags: Sequence[str]


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
