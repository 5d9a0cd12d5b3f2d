"""A group is shown without the internal topics of a group whose id begins with its own."""

import pytest

from assignor.adapters.admin import look_at_all_groups, look_at_group, open_admin
from assignor.adapters.admin.client import Target
from system_tests.broker import running_broker
from tests.assignor.inspection.described_groups import PLACING, group_of, member, place

CHANGELOGS = ("app-counts-changelog", "app-2-counts-changelog")


@pytest.mark.usefixtures("clock")
def test_changelogs_of_a_group_with_a_longer_name_are_not_of_this_one():
    with running_broker(PLACING) as broker:
        for topic in ("in", *CHANGELOGS):
            broker.create_topic(topic, 1)
        for group in ("app", "app-2"):
            place(broker, group_of(member("m", group=group), group_id=group))
        target = Target(servers=(broker.bootstrap_servers[0],), settings={}, timeout_ms=120_000)
        with open_admin(target) as admin:
            looks = [look_at_group(admin, "app"), next(look_at_all_groups(admin))]
    assert [{*look.facts.topics} & {*CHANGELOGS} for look in looks] == [{CHANGELOGS[0]}] * 2
