"""What a group runs, a step of a plan, and the way that steps make."""

from dataclasses import dataclass

from probing import Release, find_release


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What every member of a group runs.

    Attributes:
        release, upgrade_from: the program, and its setting.
        version: of exactly-once, 1 or 2; None: another guarantee, or not known.
    """

    release: Release
    upgrade_from: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One step for an operator.

    Attributes:
        old, old_upgrade_from: release and setting that the members run before the step; the setting
            is None within a way back, too.
        release, upgrade_from: release and setting that the members are restarted with.
        rolling: members are restarted one at a time; False: all are stopped first.
        settings: other settings that change, as `name=value`.
        leg: index, from 0, of the pair of consecutive stops that this step belongs to.
        stage: index of the bounce among those that the protocol needs; -1 if the step changes
            settings only.
        why: reasons, as sentences.
        deletes_state: each member starts with an empty state directory.
        resets: the application is reset before its members are started.
        expires: each member is started after its session has expired.
        drains: all internal topics are consumed before the members are stopped.
        consumes: repartition topics have to be consumed before the next step.
        transactional: members write transactions, whose markers stay as lag where they are last.
        demands: what else the step takes, as sentences: state to delete, why a reset.
        version: of exactly-once after the step, as of `Running`.
        back: the way back to what the group ran before this step; None within such a way.
    """

    old: str
    release: str
    upgrade_from: str | None
    rolling: bool
    leg: int
    stage: int
    why: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    deletes_state: bool = False
    resets: bool = False
    expires: bool = False
    drains: bool = False
    consumes: bool = False
    transactional: bool = False
    demands: tuple[str, ...] = ()
    version: int | None = None
    old_upgrade_from: str | None = None
    back: "Way | None" = None

    @property
    def after(self) -> Running:
        """What every member runs after the step."""
        return Running(
            release=find_release(self.release),
            upgrade_from=self.upgrade_from,
            version=self.version,
        )

    @property
    def loses(self) -> bool:
        """Whether the step deletes state or resets the application."""
        return self.deletes_state or self.resets


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The steps between two things that a group runs.

    Attributes:
        stops: releases in order, the first and the last included.
        steps: in order; empty if there is nothing to do.
        obstacles: why rolling bounces are not possible, as sentences.
    """

    stops: tuple[Release, ...]
    steps: tuple[PlanStep, ...]
    obstacles: tuple[str, ...] = ()

    @property
    def rolling(self) -> bool:
        """Whether rolling bounces are enough."""
        return all(step.rolling for step in self.steps)

    @property
    def free(self) -> bool:
        """Whether rolling bounces are enough, and no state is deleted."""
        return self.rolling and not any(step.loses for step in self.steps)

    @property
    def deletions(self) -> int:
        """How many times each member deletes its state directory."""
        return sum(step.loses for step in self.steps)
