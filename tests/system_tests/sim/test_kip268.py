"""KIP-268 for every order of bounces and every leader, without random choices.

Members of one release are equivalent, so one order represents all. The first leader and the leaders
that the coordinator chooses later differ; `every_bounce` tries all of them.
"""

import pytest

from probing import ReleaseError, find_release
from system_tests.matrix.expectation import CellOutcome, expect, kinds
from system_tests.sim import BounceOptions, World, WorldSetup, check_trace, run_bounce
from system_tests.sim.events import Answered, Rejoined, Settled
from system_tests.sim.world.behaviour import find_program
from system_tests.sim.world.state import MemberIds
from tests.nightly import sample

SETTLE_MS = 900_000
ENDS = "leader ends the upgrade"


class ScriptedMemberIds(MemberIds):
    """Chooses leaders by a script: one number for each choice of the coordinator.

    `is_up` returns whether the thread of a member id runs; set by `ScriptedWorld`.
    """

    script = ()
    choices = ()

    def choose_leader(self, member_ids):
        alive = [i for i in sorted(member_ids) if self.is_up(i)] or sorted(member_ids)
        taken = self.script[len(self.choices)] if len(self.choices) < len(self.script) else 0
        self.choices = (*self.choices, (taken, len(alive)))
        return alive[taken]


class ScriptedWorld(World):
    """A world with scripted choices of leaders."""

    def __init__(self, setup):
        super().__init__(setup, member_ids=ScriptedMemberIds)
        self.member_ids.is_up = self.is_up_as

    def copy(self):
        other = super().copy()
        other.member_ids.is_up = other.is_up_as
        return other

    def is_up_as(self, member_id):
        return any(thread.is_up and thread.member_id == member_id for thread in self.threads)


def every_bounce(old, new, *, members=3):
    """Bounce every process after every other, under every sequence of leaders.

    Yields the world after each bounce, and for each of its bounces the leaders and the start of its
    trace. Groups that differ only by the names of members are continued once.
    """
    world = ScriptedWorld(WorldSetup(seed=1, processes=members))
    for process in range(members):
        world.start(process, old)
    settle(world)
    waiting = [(world, ())]
    known = set()
    while waiting:
        before, bounced = waiting.pop()
        for process in sorted(set(range(members)) - {process for process, _, _ in bounced}):
            step = (process, before.leader().process, len(before.trace))
            for after in every_leader(before, process, new):
                yield after, (*bounced, step)
                key = outline(after)
                if key not in known:
                    known.add(key)
                    waiting.append((after, (*bounced, step)))


def every_leader(before, process, new):
    """Bounce a process once for each possible sequence of leaders."""
    script = ()
    while script is not None:
        world = before.copy()
        world.member_ids.script, world.member_ids.choices = script, ()
        world.stop(process)
        world.run_for(1_000)
        world.start(process, new)
        settle(world)
        yield world
        script = following(world.member_ids.choices)


def outline(world):
    """The members of a settled group, without their names."""
    return tuple(
        sorted(
            (t.behaviour.release.name, t.streams.state.used_version, t.leads) for t in world.threads
        )
    )


def following(choices):
    """The next script in order, None after the last."""
    for at in range(len(choices) - 1, -1, -1):
        taken, among = choices[at]
        if taken + 1 < among:
            return (*(number for number, _ in choices[:at]), taken + 1)
    return None


def settle(world):
    assert world.run(until=world.is_settled, within_ms=SETTLE_MS), "the group does not settle"
    used = tuple((t.name, t.streams.state.used_version) for t in world.threads if t.is_up)
    world.record(Settled(world.now_ms, 0, "", used))


def of(trace, kind):
    return [event for event in trace if isinstance(event, kind)]


def plain_pairs():
    """Pairs of kinds from 2.0 on that are marked neither broken, pinned nor bridged."""
    found = []
    names = [kind.name for kind in kinds() if find_release(kind.name).order >= (2, 0)]
    for old in names:
        for new in names:
            expected = expect(find_release(old), find_release(new))
            if expected.outcome is CellOutcome.ONE_BOUNCE and expected.upgrade_from is None:
                found.append((old, new))
    return found


def reaches_new_release(world, new):
    """Check a bounce: no rule is broken, and a bounced group ends at the promised version."""
    assert check_trace(world.trace, world.task_of) == []
    release = find_release(new)
    if any(thread.behaviour.release is not release for thread in world.threads):
        return False
    used = {thread.streams.state.used_version for thread in world.threads}
    assert used <= {release.latest_version, *release.native_versions}
    assert len(used) == 1 or release.is_native
    return True


def check_one_bounce(pairs, *, members, ways):
    """Every pair ends at the promised version in at least so many ways."""
    for old, new in pairs:
        ends = [
            reaches_new_release(world, new) for world, _ in every_bounce(old, new, members=members)
        ]
        assert sum(ends) >= ways, (old, new)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.kip("268-10", "sim")
def test_one_bounce_without_a_setting_is_enough_under_any_leader():
    pairs = plain_pairs()
    assert len(pairs) > 250
    check_one_bounce(pairs, members=2, ways=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("members", "parts"), [(3, 12), (4, 31)])
def test_one_bounce_is_enough_among_more_members(members, parts):
    check_one_bounce(
        sample(plain_pairs(), every=parts, reason="45 s for all pairs of releases"),
        members=members,
        ways=members,
    )


@pytest.mark.kip("268-11", "sim")
def test_by_the_text_a_leader_bounced_last_alone_starts_the_one_rebalance_that_is_added():
    seen = []
    for world, bounced in every_bounce("2.0.1-text", "2.3.1-text"):
        if len(bounced) < len(world.threads):
            continue
        process, leader, at = bounced[-1]
        is_last = process == leader
        answered = of(world.trace[at:], Answered)
        ended = [event.thread for event in of(world.trace, Rejoined) if event.rule == ENDS]
        assert ended == ([answered[0].thread] if is_last else [])
        assert len(answered) == 1 + is_last
        lifted = [
            event for event in of(world.trace, Rejoined) if event.used_after > event.used_before
        ]
        assert {event.thread for event in lifted} <= set(ended)
        assert {used for _, used in of(world.trace, Settled)[-1].used_versions} == {4}
        seen.append(is_last)
    assert set(seen) == {True, False}


def test_as_it_was_shipped_every_lowered_member_lifts_itself():
    most = 0
    for world, bounced in every_bounce("2.4.1", "2.5.1"):
        if len(bounced) < len(world.threads):
            continue
        rejoined = of(world.trace, Rejoined)
        lifted = {event.thread for event in rejoined if event.used_after > event.used_before}
        assert lifted == {
            event.thread for event in rejoined if event.used_after < event.used_before
        }
        assert ENDS not in {event.rule for event in rejoined}
        most = max(most, len(lifted))
    assert most == 2


def test_the_text_is_a_program_of_2_0_to_2_3_and_of_nothing_else():
    text = find_program("2.3-text")
    assert text.name == "2.3.1-text"
    assert text.known_versions == find_release("2.3.1").known_versions
    assert run_bounce(BounceOptions(old="2.0.1-text", new="2.3.1-text")).ok
    for name in ("3.9.1-text", "native-text", "1.1.1-text", "2.3.7-text"):
        with pytest.raises(ReleaseError, match=r"text|unknown"):
            find_program(name)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.kip("268-19", "sim")
@pytest.mark.parametrize("members", [3, 4])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("native", "next"),
        ("next", "native"),
        ("native", "incompatible"),
        ("incompatible", "native"),
        ("next", "incompatible"),
        ("incompatible", "next"),
    ],
)
def test_native_members_never_rejoin_for_a_version_under_any_leader(old, new, members):
    ends = 0
    for world, _ in every_bounce(old, new, members=members):
        ends += reaches_new_release(world, new)
        assert [event for event in of(world.trace, Rejoined) if event.cause == "version"] == []
    assert ends >= members
