"""A group that is held back: its level is raised and lowered while records flow (KIP-584, KIP-778).

An operator bounces the binaries first, and decides later whether the group writes the new version.
The levels are changed as an operator would, by `assignor features --group`. What a member writes
follows with its next subscription, so a member is restarted to see it.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from probing import HELD_BACK, find_release
from probing.features import ASSIGNMENT_PROTOCOL
from system_tests.live.environment import Environment
from system_tests.live.plan import Stage
from system_tests.live.processes import Members, NotInTimeError

HELD_VERSION = HELD_BACK.level_of(ASSIGNMENT_PROTOCOL)
"""The version of a group that is held back: a release without later versions can lead it."""

_TOOL = (sys.executable, "-m", "assignor.entry")
_TOOL_S = 180.0


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """A group whose level is changed, and what the steps need.

    Attributes:
        members: the members.
        settle: waits until the group has settled.
        environment: with the broker that keeps the levels.
        stage: the release that the members run.
        timeout_s: limit of each wait.
    """

    members: Members
    settle: Callable[[], None]
    environment: Environment
    stage: Stage
    timeout_s: float


def raise_and_lower(group: HeldGroup) -> None:
    """Show that a settled group is held, raise its level, and lower it again.

    Raises:
        NotInTimeError: the group did not follow.
    """
    first, *_, last = group.members.view.members
    latest = find_release(group.stage.release).latest_native_version or group.stage.latest_version
    _expect(group, HELD_VERSION)
    group.members.say(f"the binaries are new, the group is held at v{HELD_VERSION}")
    _change(group, "upgrade", latest)
    _restart(group, first)
    _expect(group, latest, but=first)
    _change(group, "downgrade", HELD_VERSION)
    _restart(group, last)
    _expect(group, HELD_VERSION)
    group.members.say(f"the group is back at v{HELD_VERSION}")


def _change(group: HeldGroup, change: str, level: int) -> None:
    """Change the level, and wait for the rebalance that announces it."""
    before = group.members.view.generation or 0
    output = _features(
        group,
        change,
        "--feature",
        f"{ASSIGNMENT_PROTOCOL}={level}",
        *(["--yes"] if change == "downgrade" else []),
    )
    for line in output.splitlines():
        group.members.say(f"features {change}: {line}")
    group.members.wait(
        lambda: (
            None
            if (group.members.view.generation or 0) > before
            else f"no rebalance has announced level {level}"
        ),
        timeout_s=group.timeout_s,
    )
    group.settle()


def _features(group: HeldGroup, *arguments: str) -> str:
    command = [
        *_TOOL,
        "features",
        *arguments,
        "--bootstrap-server",
        group.environment.bootstrap_servers,
        "--group",
        group.environment.group_id,
    ]
    limit_s = max(_TOOL_S, group.timeout_s)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise NotInTimeError(f"assignor features did not end within {limit_s:.0f} s") from None
    if done.returncode != 0:
        raise NotInTimeError(f"assignor features failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _restart(group: HeldGroup, name: str) -> None:
    group.members.stop(name)
    group.members.start(name, group.stage)
    group.settle()


def _expect(group: HeldGroup, version: int, *, but: str | None = None) -> None:
    """Wait until every member writes this version, except `but`, which has just started."""

    def reason() -> str | None:
        others = {
            m.name: m.used_version
            for m in group.members.view.alive
            if m.name != but and m.used_version != version
        }
        return f"the group does not write v{version}: {others}" if others else None

    group.members.wait(reason, timeout_s=group.timeout_s)
