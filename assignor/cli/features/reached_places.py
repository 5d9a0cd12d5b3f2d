"""Where the memory of reached topology versions is: a state directory, a group, a feature log."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from assignor.cli.features.level_admins import store_failure
from assignor.cli.toolkit import AnswerIsNo, EnvironmentFailed, warn
from assignor.cli.toolkit.connect import connected, target_of
from assignor.embedding import ProcessDirectory, StateDirectoryLocked
from assignor.levels import DEFAULT_EVERY_S, FolderLevels
from assignor.stores import StoreError
from probing.topologies import Reached, newest_memory

if TYPE_CHECKING:
    from assignor.adapters.admin import Admin

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

    def remember(self, memory: Mapping[bytes, Reached]) -> None:
        """Keep a memory with a greater epoch."""
        ...

    def wait(self, epoch: int, seconds: float) -> None:
        """Wait until all members know the epoch.

        Raises:
            AnswerIsNo: they do not know it in time.
        """
        ...


class StateDirectoryPlace:
    """The state directory of a member that is stopped."""

    def __init__(self, directory: ProcessDirectory, name: str) -> None:
        self._directory = directory
        self.name = name

    def next_step(self, version: int) -> str:  # noqa: ARG002 the same for every version
        """Return what to do after the change, as a clause."""
        return "start its member with that topology next"

    def memory(self) -> Mapping[bytes, Reached]:
        """Return what the directory remembers."""
        return self._directory.reached

    def remember(self, memory: Mapping[bytes, Reached]) -> None:
        """Write the memory into the directory."""
        self._directory.remember_reached(memory)

    def wait(self, epoch: int, seconds: float) -> None:
        """Return at once: no member runs."""


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

    def remember(self, memory: Mapping[bytes, Reached]) -> None:
        """Write the memory beside the log."""
        self._levels.remember_reached(memory)

    def wait(self, epoch: int, seconds: float) -> None:
        """Return at once: members that share a directory are not known."""


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
        """
        view, answers = self._topic.look(), self._answers()
        for warning in view.warnings:
            warn(warning)
        memory = newest_memory(view.memory, *answers)
        if not memory and answers:
            raise AnswerIsNo(
                f"{self.name} has reached no version of a changed subtopology: nothing to lower"
            )
        if not memory:
            raise AnswerIsNo(
                f"{self.name} has no members, and no topic keeps what it has reached: start a"
                " member first, or lower the memory in a state directory, with --state-dir"
            )
        if not answers:
            warn(f"{self.name} has no members: state directories may remember a later epoch")
        return memory

    def remember(self, memory: Mapping[bytes, Reached]) -> None:
        """Write the memory into the group's topic."""
        self._topic.remember(memory)

    def wait(self, epoch: int, seconds: float) -> None:
        """Wait until the answers of all members have the epoch.

        Raises:
            AnswerIsNo: one does not in time.
        """
        end = time.monotonic() + seconds
        while True:
            self._admin.again()
            answers = self._answers()
            behind = sum(max(a.values(), default=Reached(-1, 0)).epoch < epoch for a in answers)
            if not behind:
                return
            if time.monotonic() > end:
                raise AnswerIsNo(
                    f"{behind} of {len(answers)} members of {self.name} do not know epoch {epoch}"
                    f" after {seconds:g} s: the topic has it, and members learn it with"
                    " level_source=GroupLevels(...)"
                )
            time.sleep(_EVERY_S)

    def _answers(self) -> list[Mapping[bytes, Reached]]:
        """The memory in the last answer to each member."""
        from assignor.adapters.admin import describe_group  # noqa: PLC0415 as above
        from assignor.inspection import look_at_member  # noqa: PLC0415 imported where it is used

        members = describe_group(self._admin, self._group).members
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
) -> Iterator[ReachedPlace]:
    """Yield the place that the options name; failures in the block end the command."""
    folder = directory or state_dir
    try:
        if state_dir is not None:
            opened = ProcessDirectory(state_dir)
            try:
                yield StateDirectoryPlace(opened, str(state_dir))
            finally:
                opened.close()
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
