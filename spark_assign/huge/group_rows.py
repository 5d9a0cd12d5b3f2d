"""One huge group as rows of tasks and clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from assignor import AssignmentConfig
from assignor.config import config_from_mapping, setting_value
from encoding import shown
from spark_assign.tables import BadTable

_NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OneGroup:
    """A group as two tables.

    Attributes:
        name: of the group.
        tasks: a row per task (`schemas.TASK`), stored; sorted by task if the input had one row per
            group.
        clients: a row per client (`schemas.CLIENT`).
        config: its settings.
    """

    name: str
    tasks: DataFrame
    clients: DataFrame
    config: AssignmentConfig


def in_rows(
    nested: DataFrame,
    *,
    settings: tuple[tuple[str, object], ...] = (),
    what: str,
    name: str | None = None,
) -> OneGroup:
    """The only group of a table (`schemas.GROUP`) as rows, sorted by task and stored on disks.

    Args:
        nested: the table.
        settings: override those of the group.
        what: how messages call the table.
        name: the only name that the table has rows of, if one was chosen.

    Raises:
        BadTable: there is no group, or there are several.
        ConfigError: a setting is invalid.
    """
    kept = nested.persist(StorageLevel.DISK_ONLY)
    try:
        return _only_group(kept, settings, what, name)
    except BaseException:
        # Spark would find the stored rows again for this path, whatever is there by then.
        kept.unpersist()
        raise


def _only_group(
    kept: DataFrame, settings: tuple[tuple[str, object], ...], what: str, name: str | None
) -> OneGroup:
    heads = kept.select("name", "config").limit(_NAMES_SHOWN).collect()
    if not heads and name is not None:
        raise BadTable(f"{what} has no group {shown(name)}; give the name of one that it has")
    if len(heads) != 1:
        raise several(what, [str(row.name) for row in heads])
    return group_in_rows(kept, heads[0].name, heads[0].config, settings)


def several(what: str, names: Sequence[str]) -> BadTable:
    """The error that a table holds no group, or several with these names."""
    held = f"several groups ({shown(', '.join(names))}, ...)" if names else "no group"
    return BadTable(
        f"{what} holds {held}; give one, by --name, or place them with spark-assign batch"
    )


def group_in_rows(
    row: DataFrame,
    name: str,
    config: Mapping[str, str | None] | None,
    settings: tuple[tuple[str, object], ...],
) -> OneGroup:
    """The group of a table with one row as rows, sorted by task and stored on disks.

    Args:
        row: in the schema `schemas.GROUP`; it is read several times.
        name: as in the row.
        config: settings of the row as texts.
        settings: override those of the row.

    Raises:
        ConfigError: a setting is invalid.
    """
    tasks, clients = (row.select(f.inline(part)) for part in ("tasks", "clients"))
    return one_group(name, tasks, clients, config or {}, settings)


def one_group(
    name: str,
    tasks: DataFrame,
    clients: DataFrame,
    config: Mapping[str, str | None],
    settings: tuple[tuple[str, object], ...],
) -> OneGroup:
    """A group of these rows, its tasks sorted and stored; settings override its own, as texts.

    Raises:
        ConfigError: a setting is invalid.
    """
    own = {key: setting_value(key, text) for key, text in config.items() if text is not None}
    return OneGroup(
        name=name,
        tasks=_sorted(tasks),
        clients=clients,
        config=config_from_mapping(own | dict(settings)),
    )


def _sorted(tasks: DataFrame) -> DataFrame:
    """The rows of tasks, sorted over all partitions, and stored on disks once they are read."""
    order = ("subtopology", "partition")
    ordered = tasks.repartitionByRange(*order).sortWithinPartitions(*order)
    return ordered.persist(StorageLevel.DISK_ONLY)
