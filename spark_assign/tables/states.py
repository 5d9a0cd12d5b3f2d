"""Group states from a batch of groups, without an object per task.

All rows of a batch are checked and sorted together (`columns`); a group is a slice of the result.
An invalid row becomes a `Reject` and does not affect other groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from assignor import AssignmentConfig, ConfigError, GroupState
from assignor.config import config_from_mapping, setting_value
from assignor.placement import lag_warnings
from spark_assign.tables.checks import Checks, nulls
from spark_assign.tables.columns import (
    Clients,
    Copies,
    Raw,
    Tasks,
    check_tasks,
    no_value,
    sorted_clients,
    sorted_copies,
    sorted_tasks,
)
from spark_assign.tables.guard import guarded
from spark_assign.tables.rejects import Reject

Settings = tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """The groups of a batch, checked and sorted.

    Attributes:
        checks: names of the groups, and rejects.
        settings: Kafka-style settings; override those of the rows.
        configs: settings of each row.
    """

    checks: Checks
    settings: Settings
    configs: list[Any]
    raw: Raw
    clients: Clients
    tasks: Tasks
    copies: Copies

    @classmethod
    def of(cls, batch: pa.RecordBatch, settings: Settings) -> "_Batch":
        given = batch.column("name").to_pylist()
        names = [name or "" for name in given]
        checks, rows = Checks(names), range(len(names))
        unnamed = np.array([not name for name in names], dtype=np.bool_)
        empty = (None if name is None else "an empty text" for name in given)
        checks.add(unnamed, rows, "name", list(empty).__getitem__, "give the group a name")
        missing = nulls(batch.column("tasks"))
        checks.add(missing, rows, "tasks", no_value, "give a list, empty for a group without any")
        raw = Raw.of(batch, checks)
        is_empty = np.diff(raw.client_start) == 0
        checks.add(is_empty, rows, "clients", no_value, "a group needs a client")
        clients = sorted_clients(raw)
        order = check_tasks(raw)
        tasks = sorted_tasks(raw, order, clients)
        return cls(
            checks=checks,
            settings=settings,
            configs=batch.column("config").to_pylist(),
            raw=raw,
            clients=clients,
            tasks=tasks,
            copies=sorted_copies(raw, order, clients, tasks.owner),
        )

    def state(self, row: int) -> GroupState | Reject:
        """The group of a row."""
        checks, raw, own = self.checks, self.raw, self.configs[row]
        if row not in checks.rejects:
            try:
                config = _config(tuple(sorted(own or ())), self.settings)
            except ConfigError as error:
                checks.reject(row, "config", dict(own or ()), str(error))
        if row in checks.rejects:
            return checks.rejects[row]
        part = slice(int(raw.task_start[row]), int(raw.task_start[row + 1]))
        own_clients = slice(int(raw.client_start[row]), int(raw.client_start[row + 1]))
        state = GroupState(
            **self.tasks.columns(part),
            **self.copies.columns(part),
            **self.clients.columns(own_clients),
            config=config,
        )
        return replace(state, warnings=lag_warnings(state))


def states_of(
    batch: pa.RecordBatch, *, settings: Settings = ()
) -> Iterator[tuple[str, GroupState | Reject]]:
    """Names and states of the groups of a batch in the schema `schemas.GROUP`, in order.

    An invalid row yields a reject; it never raises.

    Args:
        batch: the rows.
        settings: Kafka-style settings; override those of the rows.
    """
    read = guarded("", lambda: _Batch.of(batch, settings))
    if isinstance(read, Reject):
        # The checks of the whole batch failed: read row by row, to find the row that is invalid.
        for row in range(batch.num_rows):
            yield _state_of_row(batch.slice(row, 1), settings)
        return
    for row, name in enumerate(read.checks.names):
        yield name, guarded(name, partial(read.state, row))


def _state_of_row(batch: pa.RecordBatch, settings: Settings) -> tuple[str, GroupState | Reject]:
    """Name and state of the group of a batch with one row."""
    [raw] = batch.column("name").cast(pa.binary()).to_pylist()
    name = (raw or b"").decode("utf-8", errors="replace")
    return name, guarded(name, lambda: _Batch.of(batch, settings).state(0))


@lru_cache(maxsize=256)
def _config(given: tuple[tuple[str, str | None], ...], settings: Settings) -> AssignmentConfig:
    own = {name: setting_value(name, text) for name, text in given if text is not None}
    return config_from_mapping(own | dict(settings))
