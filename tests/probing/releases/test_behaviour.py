from probing import RELEASES, LeaderModel, MemberModel


def test_every_model_but_the_text_of_the_kip_belongs_to_a_release():
    leaders = {release.leader_model for release in RELEASES}
    members = {release.member_model for release in RELEASES}
    assert set(LeaderModel) - leaders == {LeaderModel.KIP_TEXT}
    assert set(MemberModel) - members == {MemberModel.KIP_TEXT}
