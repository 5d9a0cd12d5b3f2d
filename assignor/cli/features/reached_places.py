"""Where the memory of reached topology versions is: a state directory, a group, a feature log."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from assignor.cli.features.level_admins import store_failure
from assignor.cli.toolkit import AnswerIsNo, EnvironmentFailed, warn
from assignor.cli.toolkit.connect import connected, target_of
from assignor.embedding import (
    ProcessDirectory,
    StateDirectoryLocked,
    is_state_directory,
    unchanged_memory,
)
from assignor.levels import DEFAULT_EVERY_S, FolderLevels
from assignor.stores import PROCESS_NAME, StoreError, read_reached
from probing.topologies import NEVER, Reached, credible, greatest

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin
    from assignor.inspection import DescribedMember

_LATEST_LOOK_S: Final = round(1.2 * DEFAULT_EVERY_S)
_EVERY_S: Final = 0.5


class ReachedPlace(Protocol):
    """A memory of reached versions that an operator can lower."""

    @property
    def name(self) -> str:
        """The place, as the subject of a sentence."""
        ...

    def next_step(self, version: int) -> str:
        """Return what to do after the change, as a clause."""
        ...

    def memory(self) -> Mapping[bytes, Reached]:
        """Return what is remembered now.

        Raises:
            AnswerIsNo: it is not known.
        """
        ...

    def remember(self, memory: Mapping[bytes, Reached]) -> Mapping[bytes, Reached]:
        """Keep a memory with a greater epoch; return what is remembered afterwards, read back."""
        ...

    def wait(self, epoch: int, seconds: float) -> int:
        """Wait until all members know the epoch; return how many members there are.

        Raises:
            AnswerIsNo: they do not know it in time.
        """
        ...


class StateDirectoryPlace:
    """The state directory of a member that is stopped.

    Args:
        folder: the directory; it is locked while this is used.
        memory: what it remembers.
        directory: to change it; None for a dry run.
    """

    def __init__(
        self,
        folder: Path,
        memory: Mapping[bytes, Reached],
        directory: ProcessDirectory | None = None,
    ) -> None:
        self._folder, self._memory, self._directory = folder, memory, directory
        self.name = str(folder)

    def next_step(self, version: int) -> str:  # noqa: ARG002 the same for every version
        """Return what to do after the change, as a clause."""
        return "start its member with that topology next"

    def memory(self) -> Mapping[bytes, Reached]:
        """Return what the directory remembers.

        Raises:
            AnswerIsNo: it remembers nothing.
        """
        if not self._memory:
            raise AnswerIsNo(
                f"{self.name} remembers nothing: its member has reached no version of a changed"
                " subtopology; use the state directory of a member that has"
            )
        return self._memory

    def remember(self, memory: Mapping[bytes, Reached]) -> Mapping[bytes, Reached]:
        """Write the memory into the directory; return what it remembers afterwards."""
        if self._directory is not None:
            self._directory.remember_reached(memory)
        return read_reached(self._folder)

    def wait(self, epoch: int, seconds: float) -> int:  # noqa: ARG002 no member runs
        """Return 0 at once: no member runs."""
        return 0


class FolderPlace:
    """A feature log directory that the members of a group share."""

    def __init__(self, folder: Path) -> None:
        self._levels = FolderLevels(folder)
        self.name = f"the feature log in {folder}"

    def next_step(self, version: int) -> str:
        """Return what to do after the change, as a clause."""
        return f"the leader learns it within {_LATEST_LOOK_S} s; then bounce to version {version}"

    def memory(self) -> Mapping[bytes, Reached]:
        """Return what the directory keeps.

        Raises:
            AnswerIsNo: it keeps nothing.
        """
        self._levels()  # raises an error if there is no log
        memory = self._levels.reached()
        if not memory:
            raise AnswerIsNo(f"{self.name} keeps no reached versions; is it the group's directory?")
        return memory

    def remember(self, memory: Mapping[bytes, Reached]) -> Mapping[bytes, Reached]:
        """Write the memory beside the log; return what is kept afterwards."""
        self._levels.remember_reached(memory)
        return self._levels.reached()

    def wait(self, epoch: int, seconds: float) -> int:  # noqa: ARG002 as below
        """Return 0 at once: members that share a directory are not known."""
        return 0


class GroupPlace:
    """A live group: what its leader's answers say, and its topic.

    Args:
        admin: the connected admin client.
        group: the group id.
    """

    def __init__(self, admin: "Admin", group: str) -> None:
        from assignor.adapters.admin import ReachedTopic  # noqa: PLC0415 the client is an extra

        self._admin, self._group = admin, group
        self._topic = ReachedTopic(admin, group)
        self.name = f"group {group}"

    def next_step(self, version: int) -> str:
        """Return what to do after the change, as a clause."""
        return (
            f"its leader learns it within {_LATEST_LOOK_S} s if its members have level_source="
            f"GroupLevels(...); then bounce them to version {version}"
        )

    def memory(self) -> Mapping[bytes, Reached]:
        """Return what the members have been told, and what the topic keeps.

        Raises:
            AnswerIsNo: neither says anything.
            BrokerError: the group's rebalance does not end.
            StoreError: a record of the topic has a layout of a later release.
        """
        from assignor.adapters.admin import settled_members  # noqa: PLC0415 as above

        view = self._topic.whole()
        # In a rebalance no member seems to know anything.
        answers = self._reached(settled_members(self._admin, self._group))
        for warning in view.warnings:
            warn(warning)
        answered = greatest(*answers)
        epoch = max((reached.epoch for reached in answered.values()), default=NEVER.epoch)
        # Without members, the epochs of the topic are all that is known.
        kept = credible(view.memory, epoch) if answered else view.memory
        memory = greatest(kept, answered)
        if not memory and answers:
            raise AnswerIsNo(
                f"{self.name} has not run two topologies side by side: nothing to lower yet; if its"
                " members run a newer one, start the first of them with the older one, and run the"
                " command again: that member gets no changed task before"
            )
        if not memory:
            raise AnswerIsNo(
                f"{self.name} has no members, and no topic keeps what it has reached: start a"
                " member first, or lower the memory in a state directory, with --state-dir"
            )
        if not answers:
            warn(f"{self.name} has no members: state directories may remember a later epoch")
        return memory

    def remember(self, memory: Mapping[bytes, Reached]) -> Mapping[bytes, Reached]:
        """Write the memory into the group's topic; return what topic and members have then."""
        self._topic.remember(memory)
        return greatest(self._topic.whole().memory, *self._answers())

    def wait(self, epoch: int, seconds: float) -> int:
        """Wait until the answers of all members have the epoch; return how many members there are.

        Raises:
            AnswerIsNo: one does not in time.
        """
        end = time.monotonic() + seconds
        while True:
            self._admin.again()
            answers = self._answers()
            behind = sum(max(a.values(), default=Reached(-1, 0)).epoch < epoch for a in answers)
            if not behind:
                return len(answers)
            if time.monotonic() > end:
                raise AnswerIsNo(
                    f"{behind} of {len(answers)} members of {self.name} do not know epoch {epoch}"
                    f" after {seconds:g} s: the topic has it, and members learn it with"
                    " level_source=GroupLevels(...)"
                )
            time.sleep(_EVERY_S)

    def _answers(self) -> list[Mapping[bytes, Reached]]:
        """The memory in the last answer to each member."""
        from assignor.adapters.admin import describe_settled  # noqa: PLC0415 as above

        return self._reached(describe_settled(self._admin, self._group).members)

    def _reached(self, members: Iterable["DescribedMember"]) -> list[Mapping[bytes, Reached]]:
        from assignor.inspection import look_at_member  # noqa: PLC0415 imported where it is used

        return [look_at_member(member, self._group).answer.reached for member in members]


@contextmanager
def reached_place(
    *,
    state_dir: Path | None,
    directory: Path | None,
    group: str | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    timeout: float | None,
    dry_run: bool,
) -> Iterator[ReachedPlace]:
    """Yield the place that the options name; failures in the block end the command.

    With `dry_run`, no file in a state directory is created or changed.
    """
    folder = directory or state_dir
    try:
        if state_dir is not None:
            with _state_directory(state_dir, dry_run=dry_run) as place:
                yield place
        elif directory is not None:
            yield FolderPlace(directory)
        elif group is not None:
            with connected(target_of(bootstrap_server, command_config, timeout)) as admin:
                yield GroupPlace(admin, group)
    except StateDirectoryLocked as error:
        raise EnvironmentFailed(str(error)) from None
    except StoreError as error:
        if state_dir is not None:
            raise EnvironmentFailed(str(error)) from None
        raise store_failure(error, folder or Path(f"group {group}")) from None


@contextmanager
def _state_directory(folder: Path, *, dry_run: bool) -> Iterator[StateDirectoryPlace]:
    if not is_state_directory(folder):
        raise AnswerIsNo(
            f"{folder} is no state directory: it has no file {PROCESS_NAME}; name the directory"
            " that the member was started with"
        )
    if dry_run:
        with unchanged_memory(folder) as memory:
            yield StateDirectoryPlace(folder, memory)
        return
    opened = ProcessDirectory(folder)
    try:
        yield StateDirectoryPlace(folder, opened.reached, opened)
    finally:
        opened.close()
