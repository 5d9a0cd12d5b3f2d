"""Version probing in memory: an upgraded member joins an older leader and lowers its version."""

from probing import (
    AssignmentReceived,
    MemberVersions,
    decide_answers,
    find_release,
    member_step,
    start_member,
    subscription_version,
)

leader, member = find_release("2.8"), start_member(find_release("native"))
for generation in (1, 2):
    wrote = subscription_version(member)
    new = MemberVersions(
        member_id="new", used_version=wrote.used, latest_supported_version=wrote.latest_supported
    )
    old = MemberVersions(member_id="old", used_version=9, latest_supported_version=9)
    decision = decide_answers(leader, [old, new])
    print(f"generation {generation}: {decision.why}")
    answer = next(a for a in decision.answers if a.member_id == "new")
    member, commands = member_step(
        member,
        AssignmentReceived(
            received_version=answer.version,
            commonly_supported_version=answer.commonly_supported_version,
        ),
    )
    print(f"  the new member: {commands[0].rule}: {commands[0].why}")
