"""Files with checksums, plans and snapshots: complete or refused; no group waits for a plan."""

from dataclasses import replace

import numpy as np
import pytest

from assignor import AssignmentConfig, sticky, validate
from assignor.placement import LAG_UNKNOWN, NOBODY
from assignor.stores import (
    OffloadedPlans,
    PlanStore,
    StoreError,
    fingerprint_of,
    plan_for,
    read_sealed,
    read_snapshot,
    write_sealed,
)
from tests.assignor.problems.small_groups import TASKS, state

MAGIC = b"TESTfile"


@pytest.fixture
def store(tmp_path):
    return PlanStore(tmp_path / "plans")


@pytest.fixture
def offloaded(store):
    return OffloadedPlans(store, group="orders", tasks_at_least=1)


def owners_of(group, assignment):
    return "".join(group.clients[c] for c in assignment.active.tolist())


def plan_as(store, owners, *, group="orders", **changes):
    """Write a plan for the snapshot of a group, with these owners."""
    snapshot = store.read_snapshot(group)
    active = np.array([snapshot.state.clients.index(name) for name in owners])
    assignment = replace(sticky(snapshot.state), active=active, standbys=(), **changes)
    store.write_plan(group, plan_for(snapshot, assignment))


def test_sealed_file_is_read_as_written_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "deep" / "file"
    for body in (b"", b"x" * 100_000):
        write_sealed(path, MAGIC, body)
        assert read_sealed(path, MAGIC, limit=200_000) == body
    assert [found.name for found in path.parent.iterdir()] == ["file"]
    assert read_sealed(tmp_path / "none", MAGIC, limit=10) is None


def test_every_cut_and_every_changed_byte_is_found(tmp_path):
    path = tmp_path / "file"
    write_sealed(path, MAGIC, b"some body")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError):
            read_sealed(path, MAGIC, limit=1_000)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StoreError):
            read_sealed(path, MAGIC, limit=1_000)


def test_file_that_is_too_large_is_not_read(tmp_path):
    write_sealed(tmp_path / "file", MAGIC, b"x" * 100)
    with pytest.raises(StoreError, match="the limit is 50"):
        read_sealed(tmp_path / "file", MAGIC, limit=50)


def test_disk_that_refuses_is_named(tmp_path):
    (tmp_path / "file").write_text("no directory", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        write_sealed(tmp_path / "file" / "below", MAGIC, b"")


def test_group_ids_do_not_lead_out_of_the_store(store):
    for group in ("../../etc", "a/b", ".", "..", "größe"):
        path = store.plan_path(group)
        assert path.parent.parent == store.directory
        assert path.parent.name not in (".", "..")


def test_snapshot_equals_the_state(store):
    given = state(lags={"b": {TASKS[0]: 7, TASKS[1]: LAG_UNKNOWN}}, rack="r1", tags=(("z", "1"),))
    given = replace(
        given,
        weights=np.array([1.0, 2, 1, 1, 1, 1.5]),
        partition_racks=((frozenset({"r1", "r2"}), None),) * 6,
    )
    store.write_snapshot("orders", given)
    read = store.read_snapshot("orders")
    assert read.group == "orders"
    assert read.fingerprint == fingerprint_of(given)
    for name in ("tasks", "clients", "racks", "tags", "config", "partition_racks"):
        assert getattr(read.state, name) == getattr(given, name), name
    for name in ("owner", "copy_start", "copy_client", "copy_lag", "end_offset_sums", "weights"):
        assert getattr(read.state, name).tolist() == getattr(given, name).tolist(), name
    data = store.snapshot_path("orders").read_bytes()
    assert read_snapshot(data, name="x").fingerprint == read.fingerprint


def test_fingerprint_distinguishes_members_topology_and_lags():
    before = fingerprint_of(state())
    assert fingerprint_of(state()) == before
    fewer = fingerprint_of(state("aabbaa", clients="ab"))
    assert (fewer.members == before.members, fewer.topology == before.topology) == (False, True)
    settings = fingerprint_of(state(standbys=1))
    assert settings.members == before.members
    assert settings.topology != before.topology
    lags = fingerprint_of(state(lags={"c": {TASKS[0]: 5}}))
    assert (lags.members, lags.topology) == (before.members, before.topology)
    assert lags.lags_epoch != before.lags_epoch
    # The amount of lag does not count.
    far, near = (state(lags={"c": {TASKS[0]: lag}}) for lag in (900_000, 800_000))
    assert fingerprint_of(far) == fingerprint_of(near)


def test_small_group_is_placed_at_once(store):
    offloaded = OffloadedPlans(store, group="orders", tasks_at_least=7, strategy=sticky)
    answer = offloaded(state("aaaaaa"))
    assert np.bincount(answer.active).tolist() == [2, 2, 2]
    assert store.read_snapshot("orders") is None


def test_large_group_keeps_what_it_has_and_asks_for_a_plan(store, offloaded):
    group = state("aaaa--", lags={"b": {TASKS[4]: 3}})
    answer = offloaded(group)
    assert owners_of(group, answer)[:5] == "aaaab"
    assert answer.followup
    assert "there is no plan yet; run the Spark job" in answer.warnings[0]
    snapshot = store.read_snapshot("orders")
    assert snapshot.state.owner.tolist() == answer.active.tolist()
    running = dict(snapshot.state.copies(0))
    assert running[0] == -1


def test_plan_is_taken_at_the_followup_and_only_once_needed(store, offloaded):
    first = state("aaaaaa")
    offloaded(first)
    plan_as(store, "aabbcc")
    answer = offloaded(first)
    assert owners_of(first, answer) == "aabbcc"
    assert not answer.followup
    assert validate(first, answer) == ()
    settled = state("aabbcc")
    assert owners_of(settled, offloaded(settled)) == "aabbcc"


def test_leader_that_comes_later_takes_the_plan_too(store, offloaded):
    offloaded(state("aaaaaa"))
    plan_as(store, "aabbcc")
    other = OffloadedPlans(store, group="orders", tasks_at_least=1)
    assert owners_of(state(), other(state("aaaaaa"))) == "aabbcc"


def test_plan_with_warmups_leads_to_the_next_step(store, offloaded):
    offloaded(state("aaaaaa"))
    plan_as(store, "aaaacc", followup=True)
    offloaded(state("aaaaaa"))
    step = offloaded(state("aaaacc"))
    assert step.followup
    assert owners_of(state(), step) == "aaaacc"
    assert store.read_snapshot("orders").state.owner.tolist() == [0, 0, 0, 0, 2, 2]


REFUSED = {
    "members changed": lambda: state("aaaaaa", clients="ab"),
    "topology changed": lambda: state("aaaaaa", standbys=1),
}


@pytest.mark.parametrize("why", REFUSED)
def test_plan_for_another_group_is_refused_with_the_reason(store, offloaded, why):
    offloaded(state("aaaaaa"))
    plan_as(store, "aabbcc")
    group = REFUSED[why]()
    answer = offloaded(group)
    assert f"the plan is rejected ({why}" in answer.warnings[0]
    assert "; run the Spark job again" in answer.warnings[0]
    assert owners_of(group, answer) == "aaaaaa"
    assert store.read_snapshot("orders").fingerprint.members == fingerprint_of(group).members


def test_plan_is_stale_when_a_place_has_fallen_behind(store, offloaded):
    ready = state("aaaaaa", lags={"b": {TASKS[2]: 0}})
    offloaded(ready)
    plan_as(store, "aabaaa")
    late = state("aaaaaa", lags={"b": {TASKS[2]: 500_000}})
    answer = offloaded(late)
    assert (
        "stale: 1 tasks would start on copies that are not caught up, for example 0_2 on b"
        in answer.warnings[0]
    )
    assert owners_of(late, answer) == "aaaaaa"
    # Back again, it is taken.
    assert owners_of(ready, offloaded(ready)) == "aabaaa"


def unreported(group):
    """The group as its leader sees it where no member reports what it runs, or an offset."""
    return replace(
        group,
        owner=np.full_like(group.owner, NOBODY),
        copy_lag=np.full_like(group.copy_lag, LAG_UNKNOWN),
    )


def test_plan_fits_the_snapshot_whatever_members_report_of_tasks_that_stay(store, offloaded):
    group = state("aaaaaa")
    offloaded(replace(group, end_offset_sums=np.zeros_like(group.end_offset_sums)))
    plan_as(store, "aabbcc")
    found = unreported(store.read_snapshot("orders").state)
    assert owners_of(found, offloaded(found)) == "aabbcc"


def test_plan_is_stale_where_a_task_that_stays_runs_elsewhere_by_now(store, offloaded):
    offloaded(state("aaaaaa"))
    plan_as(store, "aaaabc")
    taken_over = state("baaaaa", lags={"a": {TASKS[0]: 500_000}})
    assert "0_0 on a" in offloaded(taken_over).warnings[0]


def test_plan_of_a_release_that_did_not_write_what_moves_is_taken(store, offloaded):
    offloaded(state("aaaaaa"))
    plan_as(store, "aabbcc")
    plan = store.read_plan("orders")
    assert plan.moves.tolist() == [False, False, True, True, True, True]
    store.write_plan("orders", replace(plan, moves=None))
    assert store.read_plan("orders").moves is None
    assert owners_of(state(), offloaded(state("aaaaaa"))) == "aabbcc"


def test_plan_that_starts_behind_knowingly_is_taken(store, offloaded):
    offloaded(state("aaaaaa"))
    plan_as(store, "aabaaa")
    nearer = state("aaaaaa", lags={"b": {TASKS[2]: 900_000}})
    assert owners_of(nearer, offloaded(nearer)) == "aabaaa"


def test_broken_plan_is_refused_and_the_group_continues(store, offloaded):
    group = state("aaaaaa")
    offloaded(group)
    plan_as(store, "aabbcc")
    path = store.plan_path("orders")
    path.write_bytes(path.read_bytes()[:-1])
    answer = offloaded(group)
    assert "it is not used" in answer.warnings[0]
    assert owners_of(group, answer) == "aaaaaa"
    path.write_bytes(b"something else entirely, long enough")
    assert "has another format" in offloaded(group).warnings[0]


def test_invalid_assignment_never_becomes_a_plan(store, offloaded):
    offloaded(state("aaaaaa"))
    snapshot = store.read_snapshot("orders")
    invalid = replace(sticky(snapshot.state), active=np.array([0, 0, 0, 0, 0, 9]))
    with pytest.raises(StoreError, match="0_5 is active on client 9"):
        plan_for(snapshot, invalid)
    valid = plan_for(snapshot, sticky(snapshot.state))
    store.write_plan("orders", replace(valid, assignment=invalid))
    answer = offloaded(state("aaaaaa"))
    assert "not valid: task 0_5 is active on client 9" in answer.warnings[0]


def test_plan_with_more_standbys_than_the_group_can_need_is_refused_before_they_are_read(
    store, offloaded
):
    """A million pairs for six tasks blocked the leader for seconds, again at each rebalance."""
    group = state("aaaaaa")
    offloaded(group)
    plan_as(store, "aabbcc")
    plan = store.read_plan("orders")

    def with_pairs(number):
        pairs = tuple((pair % 6, pair // 6 % 3) for pair in range(number))
        store.write_plan(
            "orders", replace(plan, assignment=replace(plan.assignment, standbys=pairs))
        )

    assert (group.config.num_standby_replicas, group.config.max_warmup_replicas) == (0, 2)
    with_pairs(13)
    assert "13 standby entries, and this group has at most 12" in offloaded(group).warnings[0]
    with_pairs(12)
    assert "0_0 holds two copies" not in offloaded(group).warnings[0]
    assert "not valid" in offloaded(group).warnings[0]
    with_pairs(100_000)
    size = store.plan_path("orders").stat().st_size
    [warning] = offloaded(group).warnings
    assert f"has {size} bytes; the limit is 4624; it is not used; run the Spark job" in warning
    assert len(store.read_plan("orders").assignment.standbys) == 100_000, "a tool reads any"


def test_plan_with_all_standbys_that_the_settings_allow_is_within_the_limit(tmp_path):
    """In the format with the widest numbers."""
    config = AssignmentConfig(num_standby_replicas=1, max_warmup_replicas=1)
    group = replace(state("aaaaaa"), config=config)
    store = PlanStore(tmp_path, persistent_version=1)
    store.write_snapshot("orders", group)
    pairs = tuple((task, client) for task in range(6) for client in (1, 2))
    active = np.zeros(6, dtype=np.int64)
    assignment = replace(sticky(group), active=active, standbys=pairs, warmups=pairs)
    store.write_plan("orders", plan_for(store.read_snapshot("orders"), assignment))
    assert store.read_plan("orders", state=group).assignment.warmups == pairs


def test_links_in_the_store_are_not_written_through(store, offloaded, tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"secret")
    victim.chmod(0o600)
    group = state("aaaaaa")
    offloaded(group)
    path, other = store.snapshot_path("orders"), state("bbbbbb")
    path.unlink()
    path.symlink_to(victim)
    assert any("state.bin is a symbolic link to" in each for each in offloaded(other).warnings)
    path.unlink()
    path.parent.rmdir()
    (tmp_path / "elsewhere").mkdir()
    path.parent.symlink_to(tmp_path / "elsewhere")
    assert any("orders is a symbolic link to" in each for each in offloaded(other).warnings)
    assert (victim.read_bytes(), victim.stat().st_mode & 0o777) == (b"secret", 0o600)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_names_with_half_of_a_surrogate_pair_are_one_sentence(store):
    """Python makes such texts of bytes that are no UTF-8, such as an argument of a command."""
    for call in (store.read_plan, store.read_snapshot, store.snapshot_path):
        with pytest.raises(StoreError, match=r"group id 'a\\udcff' has half a surrogate pair"):
            call("a\udcff")
    with pytest.raises(StoreError, match=r"group id 'a\\udcff' has half a surrogate pair"):
        store.write_snapshot("a\udcff", state())
    racks = replace(state(), racks=("r\ud800", "s", "t"))
    with pytest.raises(StoreError, match=r"state.bin cannot be written .*surrogates not allowed"):
        store.write_snapshot("orders", racks)
    assert store.read_snapshot("orders") is None


def test_store_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "plans").write_text("a file where the store should be", encoding="utf-8")
    offloaded = OffloadedPlans(PlanStore(tmp_path / "plans"), group="orders", tasks_at_least=1)
    group = state("aaaaaa")
    answer = offloaded(group)
    assert owners_of(group, answer) == "aaaaaa"
    assert any("no plan can be requested" in warning for warning in answer.warnings)
