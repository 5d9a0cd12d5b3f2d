"""Mistakes to plant in the rules of feature levels: a row removed, a step removed or swapped."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from probing.features import UpdateModel, bootstrap, group, joining, migration
from probing.features.updates import rules
from system_tests.cluster import operate
from system_tests.cluster.machines import (
    MinimumRecord,
    PublishLevels,
    Rewritten,
    WriteSnapshot,
    controller,
    replica,
    replica_step,
    roles,
)
from system_tests.cluster.nodes import clients, reading
from system_tests.cluster.nodes import controller as active


@dataclass(frozen=True, slots=True)
class Planted:
    """One mistake, the function that plants it, an experiment that shows it, and its checker."""

    name: str
    plant: Callable[[object], None]
    scenario: str
    seed: int
    breaks: str


def _without(table, name):
    assert any(row.name == name for row in table), name
    return tuple(row for row in table if row.name != name)


def update_row(name):
    table = rules.UPDATE_RULES[UpdateModel.KIP]
    return lambda patch: patch.setitem(rules.UPDATE_RULES, UpdateModel.KIP, _without(table, name))


def row(module, table, name):
    return lambda patch: patch.setattr(module, table, _without(getattr(module, table), name))


def always(module, table, name):
    """Make the condition of a row always true."""
    rows = tuple(
        replace(row, holds=lambda _: True) if row.name == name else row
        for row in getattr(module, table)
    )
    return lambda patch: patch.setattr(module, table, rows)


def news_from_any_broker(patch):
    """Make a leader adopt every difference, also of an outdated broker."""
    rows = tuple(replace(row, starts_rebalance=True) for row in group.LOOK_RULES)
    patch.setattr(group, "LOOK_RULES", rows)


def commands(change):
    """Change the commands of nodes that read the log."""

    def step(state, event):
        after, actions = replica_step(state, event)
        return after, tuple(change(actions))

    return lambda patch: patch.setattr(reading, "replica_step", step)


def published_first(actions):
    return sorted(actions, key=lambda action: not isinstance(action, PublishLevels))


def no_snapshot(actions):
    return [action for action in actions if not isinstance(action, WriteSnapshot)]


def nothing_dropped(patch):
    def keep(_schema, entries, _level):
        ordered = sorted(entries, key=lambda entry: (entry.kind, entry.key))
        return Rewritten(entries=tuple(ordered), dropped=())

    patch.setattr(replica, "rewrite_content", keep)


def losses_untold(patch):
    whole = replica.rewrite_content

    def silent(schema, entries, level):
        done = whole(schema, entries, level)
        return Rewritten(entries=done.entries, dropped=())

    patch.setattr(replica, "rewrite_content", silent)


def minimum_of_any_node(patch):
    """Raise a minimum when the first node supports it, not the last."""

    def eager(state):
        found = []
        for feature, level in sorted(state.finalized.levels.items()):
            known = [r.node.ranges.get(feature) for r in state.registrations.values()]
            highest = max((levels.min for levels in known if levels), default=0)
            if state.minimums.get(feature, 1) < highest <= level:
                found.append(MinimumRecord(feature=feature, level=highest))
        return tuple(found)

    patch.setattr(controller, "deprecated_minimums", eager)


def acknowledged_at_once(patch):
    patch.setattr(operate, "when_committed", lambda _, act: act())


def registrations_forgotten(patch):
    patch.setattr(active, "_registrations", lambda _: {})


def lowered_by_a_stale_answer(patch):
    patch.setattr(clients, "adopt_levels", lambda _, answered: answered)
    patch.setattr(clients, "group_levels", lambda polled, _: polled)


def members_levels_unheard(patch):
    patch.setattr(clients, "group_levels", lambda polled, _: polled)


PLANTED = (
    Planted(
        "nodes are not asked", update_row("a node cannot"), "upgrade", 17, "every live broker can"
    ),
    Planted(
        "no majority is needed",
        update_row("no majority of the quorum"),
        "minority",
        51,
        "a majority can",
    ),
    Planted(
        "safe may lose something",
        update_row("lossy downgrade"),
        "downgrade",
        0,
        "safe is lossless",
    ),
    Planted(
        "an upgrade may lower",
        update_row("lowered by an upgrade"),
        "upgrade",
        36,
        "only what was asked",
    ),
    Planted(
        "nothing is required",
        update_row("requires another feature"),
        "upgrade",
        15,
        "requirements hold",
    ),
    Planted(
        "deprecated levels come back",
        update_row("deprecated level"),
        "downgrade",
        0,
        "minimums hold",
    ),
    Planted(
        "a minimum rises with the first node", minimum_of_any_node, "upgrade", 0, "minimums hold"
    ),
    Planted(
        "all nodes are registered",
        row(joining, "JOIN_RULES", "lacks a finalized level"),
        "upgrade",
        16,
        "kept out",
    ),
    Planted(
        "who cannot stays",
        always(roles, "ROLE_RULES", "level is supported"),
        "minority",
        0,
        "only supported",
    ),
    Planted(
        "in use before it is written", commands(published_first), "upgrade", 0, "snapshot first"
    ),
    Planted("no snapshot of before", commands(no_snapshot), "upgrade", 0, "snapshot first"),
    Planted("nothing is dropped", nothing_dropped, "downgrade", 0, "rewritten at the level"),
    Planted("losses are not told", losses_untold, "downgrade", 0, "rewritten at the level"),
    Planted(
        "acknowledged before it is committed",
        acknowledged_at_once,
        "upgrade",
        0,
        "acknowledged is committed",
    ),
    Planted(
        "registrations end with the office", registrations_forgotten, "upgrade", 0, "minimums hold"
    ),
    Planted(
        "the format is forgotten",
        row(bootstrap, "BOOTSTRAP_RULES", "formatted with a level"),
        "upgrade",
        0,
        "only what was asked",
    ),
    Planted(
        "the format comes again",
        row(bootstrap, "BOOTSTRAP_RULES", "the log has a level"),
        "upgrade",
        0,
        "only what was asked",
    ),
    Planted(
        "the flag counts at once",
        row(migration, "MIGRATION_RULES", "setting is below the migration version"),
        "double-roll",
        0,
        "readable",
    ),
    Planted(
        "a flag without a level decides",
        row(migration, "MIGRATION_RULES", "flag is not finalized"),
        "double-roll",
        0,
        "readable",
    ),
    Planted(
        "levels count before the migration",
        row(joining, "JOIN_RULES", "levels do not count yet"),
        "double-roll",
        0,
        "comes to rest",
    ),
    Planted("every answer is news", news_from_any_broker, "lag", 0, "one rebalance"),
    Planted("members are not heard", members_levels_unheard, "lag", 0, "the group goes on"),
    Planted("an older answer counts", lowered_by_a_stale_answer, "lag", 0, "the group goes on"),
)
