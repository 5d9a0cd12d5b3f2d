"""What is normal at the start of a group: INFO at first, a warning if it lasts."""

import logging
from types import SimpleNamespace

import pytest

from assignor.adapters.membership.lasting import TOPIC_AFTER_S, LastingWarnings
from assignor.rebalance import GroupMember
from tests.assignor.adapters.members import Listener, cluster
from tests.assignor.adapters.membership.clients import connected
from tests.log_records import records_of

NOTE, FAULT = "topic words is not known yet", "a member is quarantined"


class VirtualTime:
    """Time, and the timers that are due by then."""

    def __init__(self):
        self.now_s, self.timers, self.reports = 0.0, [], []

    def start(self, delay_s, call):
        timer = [self.now_s + delay_s, call]
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: timer in self.timers and self.timers.remove(timer))

    def pass_s(self, seconds):
        self.now_s += seconds
        for timer in [each for each in self.timers if each[0] <= self.now_s]:
            self.timers.remove(timer)
            timer[1]()


@pytest.fixture
def virtual():
    return VirtualTime()


@pytest.fixture
def warnings(virtual):
    made = LastingWarnings(
        virtual.reports.append,
        after_s=30,
        topic_after_s=10,
        now=lambda: virtual.now_s,
    )
    yield made
    made.close()


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "assignor.adapters.membership.lasting")
    return lambda: [(each.levelname, each.getMessage()) for each in records_of(caplog)]


def decide(warnings, virtual, *sentences, transient=(NOTE,)):
    warnings.begin_join()
    warnings.decided(sentences, frozenset(transient), virtual.start)


def test_it_is_info_once_however_many_rebalances_there_are(warnings, virtual, lines):
    for _ in range(3):
        decide(warnings, virtual, NOTE)
        virtual.pass_s(5)
    assert lines() == [("INFO", NOTE)]


def test_it_is_a_warning_once_it_has_lasted_without_a_rebalance(warnings, virtual, lines):
    decide(warnings, virtual, NOTE)
    virtual.pass_s(29)
    assert len(lines()) == 1
    virtual.pass_s(1)
    assert lines()[1:] == [("WARNING", f"{NOTE} (for 30 s)")]
    decide(warnings, virtual, NOTE)
    virtual.pass_s(60)
    assert len(lines()) == 2


def test_it_is_a_warning_once_it_has_lasted_over_rebalances(warnings, virtual, lines):
    decide(warnings, virtual, NOTE)
    virtual.pass_s(20)
    decide(warnings, virtual, NOTE)
    virtual.pass_s(10)
    assert [level for level, _ in lines()] == ["INFO", "WARNING"]


def test_what_has_passed_begins_anew(warnings, virtual, lines):
    decide(warnings, virtual, NOTE)
    virtual.pass_s(20)
    decide(warnings, virtual)
    virtual.pass_s(20)
    decide(warnings, virtual, NOTE)
    virtual.pass_s(20)
    assert [level for level, _ in lines()] == ["INFO", "INFO"]


def test_a_member_that_leads_no_more_warns_of_nothing(warnings, virtual, lines):
    decide(warnings, virtual, NOTE)
    warnings.begin_join()
    virtual.pass_s(60)
    assert len(lines()) == 1
    decide(warnings, virtual, NOTE)
    assert [level for level, _ in lines()] == ["INFO"] * 2
    warnings.close()
    virtual.pass_s(60)
    assert len(lines()) == 2
    assert virtual.timers == []


def test_other_warnings_are_warnings_at_once_and_each_time(warnings, virtual, lines):
    for _ in range(2):
        decide(warnings, virtual, NOTE, FAULT)
    assert lines() == [("INFO", NOTE), ("WARNING", FAULT), ("WARNING", FAULT)]


def test_two_sentences_are_due_at_their_own_times(warnings, virtual, lines):
    decide(warnings, virtual, NOTE)
    virtual.pass_s(10)
    decide(warnings, virtual, NOTE, "other", transient=(NOTE, "other"))
    virtual.pass_s(20)
    assert [text for level, text in lines() if level == "WARNING"] == [f"{NOTE} (for 30 s)"]
    virtual.pass_s(10)
    assert [text for level, text in lines() if level == "WARNING"][1:] == ["other (for 30 s)"]


def test_a_missing_source_topic_is_reported_once_after_ten_seconds(warnings, virtual, lines):
    for wait_s in (5, 4):
        warnings.begin_join()
        warnings.decided([NOTE], {NOTE}, virtual.start, missing_topics={NOTE: "words"})
        virtual.pass_s(wait_s)
    assert virtual.reports == []
    virtual.pass_s(1)
    virtual.pass_s(60)
    [report] = virtual.reports
    assert report.startswith("source topic words does not exist, or this user may not describe it")
    assert warnings.missing == (report,)
    warnings.begin_join()  # another member may lead, and knows better
    assert warnings.missing == ()
    assert lines() == [("INFO", NOTE)], "the report is logged by whom it is made to"


def test_a_topic_that_was_known_is_reported_sooner(warnings, virtual):
    def lead(*missing):
        warnings.begin_join()
        topics = dict.fromkeys(missing, "words")
        warnings.decided(missing, frozenset(missing), virtual.start, missing_topics=topics)

    lead()
    lead(NOTE)
    virtual.pass_s(2.9)
    assert virtual.reports == []
    virtual.pass_s(0.2)
    assert len(virtual.reports) == 1
    # Another member has led since: this one may not know the topic yet.
    lead()
    warnings.begin_join()
    lead(NOTE)
    virtual.pass_s(9.9)
    assert len(virtual.reports) == 1
    virtual.pass_s(0.2)
    assert len(virtual.reports) == 2


def test_a_report_may_close_the_member(virtual):
    made = LastingWarnings(lambda _: made.close(), topic_after_s=0, now=lambda: virtual.now_s)
    made.decided([NOTE], {NOTE}, virtual.start, missing_topics={NOTE: "words"})
    assert virtual.timers == []


def test_a_leader_reports_a_missing_source_topic_to_its_application():
    listener = Listener()
    membership, client, _ = connected(listener=listener)
    group = [GroupMember(member_id="m1", user_data=membership.join())]
    membership.decide(cluster(other=1), group)
    assert client.delays_s == [pytest.approx(TOPIC_AFTER_S, abs=1)]
    assert membership.reporter.failures == []
    membership.warnings._topic_after_s = 0
    client.fire()
    [report] = membership.reporter.failures
    assert report.startswith("source topic lines does not exist")
    assert listener.calls[-1] == ("error", report)
