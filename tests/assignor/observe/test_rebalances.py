"""Whole rebalances from single steps: outcomes, moves, durations; then log lines and metrics."""

import logging

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from assignor import RebalanceHook
from assignor.observe import (
    AnswerHandled,
    AnswerRefused,
    AnswersDecided,
    AssignmentFailed,
    AssignmentTaken,
    MemberFailed,
    MembershipLost,
    Outcome,
    RebalanceWatch,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.observe.log_lines import LoggingHook
from assignor.observe.prometheus import PrometheusHook
from encoding import TaskId

A, B, C = (TaskId(0, number) for number in range(3))


class Recorder(RebalanceHook):
    def __init__(self):
        self.calls = []

    def on_rebalance_start(self, start):
        self.calls.append(start)

    def on_rebalance_end(self, end):
        self.calls.append(end)

    def on_assignment_completed(self, decided):
        self.calls.append(decided)

    def on_assignment_error(self, why):
        self.calls.append(("error", why))

    def on_membership_lost(self, lost):
        self.calls.append(lost)

    def on_member_failed(self, why):
        self.calls.append(("failed", why))


class Clock:
    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def wrote(version=11):
    return SubscriptionWritten(version=version, latest_supported_version=11, size=120)


def took(*tasks, error=0, standby=(), warmup=(), waiting=(), stopped=()):
    return AssignmentTaken(
        generation=5,
        version=11,
        commonly_supported_version=11,
        active_tasks=tasks,
        standby_tasks=standby,
        error_code=error,
        next_version=101,
        warmup_tasks=warmup,
        size=80,
        waiting=waiting,
        stopped=stopped,
    )


def rejoin(*, for_version):
    return RejoinRequested(
        rule="r",
        why="because",
        used_version_before=11,
        used_version_after=10,
        for_version=for_version,
    )


def decision(**fields):
    base = {
        "version": 11,
        "commonly_supported_version": 11,
        "members": 3,
        "rule": "r",
        "why": "w",
        "version_probing": False,
        "future_members": ("f",),
        "quarantined_members": (),
        "placed_tasks": 6,
        "moved_tasks": 2,
        "size": 900,
        "seconds": 0.02,
    }
    return AnswersDecided(**base | fields)


HANDLED = AnswerHandled(generation=5)


def played(*observations, hooks=None, clock=None):
    recorder = Recorder()
    watch = RebalanceWatch(hooks or [recorder], clock or Clock())
    for observation in observations:
        watch(observation)
    return recorder.calls


def test_a_rebalance_begins_with_its_first_join_and_ends_when_the_application_knows():
    clock, recorder = Clock(), Recorder()
    watch = RebalanceWatch([recorder], clock)
    watch(wrote())
    clock.now_s += 2
    watch(wrote(10))  # the join had to be repeated
    clock.now_s += 0.5
    watch(took(A, B, standby=(C,), warmup=(C,)))
    assert len(recorder.calls) == 1, "not before the listener was called"
    clock.now_s += 0.25
    watch(HANDLED)
    start, end = recorder.calls
    assert (start.used_version, start.subscription_size) == (11, 120)
    assert (end.seconds, end.joins, end.used_version, end.next_version) == (2.75, 2, 10, 101)
    assert (end.active_tasks, end.standby_tasks, end.warmup_tasks) == ((A, B), (C,), (C,))
    assert (end.subscription_size, end.assignment_size) == (120, 80)


def test_moves_are_counted_against_the_rebalance_before():
    ends = played(wrote(), took(A, B), HANDLED, wrote(), took(B, C), HANDLED)[1::2]
    assert [(end.gained_tasks, end.lost_tasks) for end in ends] == [((A, B), ()), ((C,), (A,))]


def test_what_was_lost_with_the_membership_is_gained_anew():
    lost = MembershipLost(active_tasks=(A,))
    calls = played(wrote(), took(A), HANDLED, lost, wrote(), took(A), HANDLED)
    assert calls[2] == lost
    assert calls[-1].gained_tasks == (A,)


@pytest.mark.parametrize(
    ("steps", "outcome", "why"),
    [
        ([took(A)], Outcome.SETTLED, ""),
        ([took(A), rejoin(for_version=True)], Outcome.VERSION, "because"),
        ([took(A), rejoin(for_version=False)], Outcome.FOLLOWUP, "because"),
        ([took(error=1)], Outcome.ERROR, "error 1"),
        (
            [took(A, waiting=(1, 2))],
            Outcome.WAITING,
            "no tasks in subtopologies 1, 2: topics are missing or unknown",
        ),
        (
            [took(waiting=(0,), stopped=("reset x", "create y"))],
            Outcome.STOPPED,
            "no tasks in subtopology 0: reset x; create y",
        ),
        ([took(A, stopped=("reset x",))], Outcome.SETTLED, ""),
        ([took(waiting=(0,)), rejoin(for_version=True)], Outcome.VERSION, "because"),
        ([AnswerRefused(generation=5, why="unreadable")], Outcome.REFUSED, "unreadable"),
        ([took(A), AnswerRefused(generation=5, why="strange")], Outcome.REFUSED, "strange"),
    ],
)
def test_every_rebalance_has_one_outcome(steps, outcome, why):
    end = played(wrote(), *steps, HANDLED)[-1]
    assert (end.outcome, end.why) == (outcome, why)
    again = played(wrote(), *steps, HANDLED, wrote(), took(A), HANDLED)[-1]
    assert again.outcome is Outcome.SETTLED, "an outcome is forgotten with the next join"


def test_results_and_errors_of_the_leader_reach_hooks_unchanged():
    decided = decision()
    failed, ended = AssignmentFailed(why="topics"), MemberFailed(why="gone")
    assert played(decided, failed, ended) == [decided, ("error", "topics"), ("failed", "gone")]


def test_a_hook_that_raises_hinders_neither_the_next_hook_nor_the_client(caplog):
    class Broken(RebalanceHook):
        def on_rebalance_start(self, start):
            raise ValueError("bug")

    recorder = Recorder()
    with caplog.at_level(logging.CRITICAL, "assignor.observe.rebalances"):
        played(wrote(), hooks=[Broken(), recorder])
    assert len(recorder.calls) == 1


def test_the_log_has_one_line_per_rebalance_and_warns_of_failed_ones():
    lines = []

    class Handler(logging.Handler):
        def emit(self, record):
            lines.append((record.levelname, record.getMessage()))

    logger = logging.Logger("test", logging.INFO)  # noqa: LOG001 none that other tests could reach
    logger.addHandler(Handler())
    lost = MembershipLost(active_tasks=(A,))
    played(
        *(wrote(), decision(), took(A, B), HANDLED),
        *(wrote(), AnswerRefused(generation=5, why="cut"), HANDLED, lost),
        hooks=[LoggingHook(logger)],
    )
    assert [level for level, _ in lines] == ["INFO", "INFO", "WARNING", "WARNING"]
    assert lines[0][1].startswith("leader members=3 tasks=6 standbys=")
    assert lines[1][1].startswith("generation=5 outcome=settled active=2 standby=0 gained=2 ")
    assert " version=11 next=101 seconds=" in lines[1][1]
    assert "outcome=refused" in lines[2][1]
    assert lines[2][1].endswith('why="cut"')
    assert "None" not in " ".join(text for _, text in lines)


def sample(registry, name, **labels):
    return registry.get_sample_value(name, {"group": "g", "client_id": "c", **labels})


def test_metrics_have_prometheus_names_and_kafkas_labels():
    registry, clock = CollectorRegistry(), Clock()
    hook = PrometheusHook(group="g", client_id="c", registry=registry, now=lambda: 1234.0)
    watch = RebalanceWatch([hook], clock)
    watch(wrote())
    watch(decision())
    clock.now_s += 0.2
    assert sample(registry, "streams_rebalance_leader_members", kind="future") == 1
    for observation in (took(A, B, standby=(C,)), HANDLED, wrote(), took(A, error=1), HANDLED):
        watch(observation)
    assert sample(registry, "streams_rebalance_total", outcome="settled") == 1
    assert sample(registry, "streams_rebalance_total", outcome="error") == 1
    assert sample(registry, "streams_rebalance_duration_seconds_count") == 2
    assert sample(registry, "streams_rebalance_duration_seconds_sum") == pytest.approx(0.2)
    assert sample(registry, "streams_rebalance_last_timestamp_seconds") == 1234.0
    assert sample(registry, "streams_rebalance_version", kind="next") == 101
    assert sample(registry, "streams_rebalance_tasks", kind="active") == 1
    assert sample(registry, "streams_rebalance_task_moves_total", kind="gained") == 2
    assert sample(registry, "streams_rebalance_task_moves_total", kind="lost") == 1
    assert sample(registry, "streams_rebalance_bytes", kind="assignment") == 80
    assert sample(registry, "streams_rebalance_leader_moved_tasks_total") == 2
    watch(MembershipLost(active_tasks=(A,)))
    watch(MemberFailed(why="gone"))
    watch(AssignmentFailed(why="topics"))
    assert sample(registry, "streams_rebalance_tasks", kind="active") == 0
    assert sample(registry, "streams_rebalance_membership_lost_total") == 1
    assert sample(registry, "streams_rebalance_member_failed_total") == 1
    assert sample(registry, "streams_rebalance_leader_errors_total") == 1


@pytest.mark.parametrize(
    "later",
    [
        (wrote(), took(A), HANDLED),
        (MembershipLost(active_tasks=(A,)),),
        (MemberFailed(why="gone"),),
    ],
)
def test_gauges_of_the_leader_are_those_of_the_leader(later):
    registry = CollectorRegistry()
    watch = RebalanceWatch([PrometheusHook(group="g", client_id="c", registry=registry)], Clock())
    names = ("members", "waiting_partitions", "bytes")

    def shown():
        lines = generate_latest(registry).decode().splitlines()
        return {n for n in names if any(f"_leader_{n}{{" in line for line in lines)}

    for observation in (wrote(), decision(), took(A), HANDLED):
        watch(observation)
    assert shown() == {*names}
    for observation in later:
        watch(observation)
    assert shown() == set()
    assert sample(registry, "streams_rebalance_leader_assignments_total") == 1


def test_a_decision_for_a_join_that_failed_makes_no_leader():
    registry = CollectorRegistry()
    hook = PrometheusHook(group="g", client_id="c", registry=registry)
    played(wrote(), decision(), wrote(), took(A), HANDLED, hooks=[hook])
    assert sample(registry, "streams_rebalance_leader_bytes") is None


def test_counters_begin_at_0():
    registry = CollectorRegistry()
    PrometheusHook(group="g", client_id="c", registry=registry)
    found = [metric for metric in registry.collect() if metric.type == "counter"]
    assert len(found) == 7
    assert all(
        each.samples and not any(s.value for s in each.samples if s.name.endswith("_total"))
        for each in found
    )


def test_several_members_share_a_registry():
    registry = CollectorRegistry()
    for name in ("c", "d"):
        hook = PrometheusHook(group="g", client_id=name, registry=registry)
        played(wrote(), took(A), HANDLED, hooks=[hook])
    text = generate_latest(registry).decode()
    assert text.count("streams_rebalance_generation{") == 2


def test_every_metric_that_the_module_lists_exists_and_no_other():
    import assignor.observe.prometheus as module  # noqa: PLC0415 the test reads its docstring

    registry = CollectorRegistry()
    hook = PrometheusHook(group="g", client_id="c", registry=registry)
    steps = (wrote(), decision(), took(A), HANDLED, MembershipLost(active_tasks=()))
    played(*steps, MemberFailed(why=""), AssignmentFailed(why=""), hooks=[hook])
    listed = {
        line.split()[0].split("{")[0]
        for line in module.__doc__.splitlines()
        if line.startswith("streams_rebalance_")
    }
    counters = {"counter": "_total"}
    found = {metric.name + counters.get(metric.type, "") for metric in registry.collect()}
    assert found == listed
