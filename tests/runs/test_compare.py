"""Models asked side by side: each pane is a run of its own (C80-C82)."""

import pytest

from headwater.events import Completed, Failed, Stopped
from headwater.records import Group, Session
from tests.runs.puppets import OWNER, MakeStore, new_id, stage

pytestmark = pytest.mark.anyio


async def test_one_pane_is_stopped_and_disturbs_no_other(make_store: MakeStore) -> None:
    async with stage(make_store) as staged:
        panes = [f"pane{n}" for n in range(4)]
        group = Group(id=new_id("grp"), owner=OWNER, created_at=1.0, session_ids=tuple(panes))
        sessions = tuple(
            Session(id=pane, owner=OWNER, created_at=1.0, updated_at=1.0, group_id=group.id, hidden=True)
            for pane in panes
        )
        await staged.store.create_group(group, sessions)
        begun = [await staged.begin("Which?", pane, on_disconnect="cancel") for pane in panes]
        for _, puppet in begun:
            puppet.say("so ", "far")
        answer = await staged.runs.stop(OWNER, begun[1][0])
        assert answer is not None
        assert answer.run.outcome == Stopped("user")
        assert [puppet.cancelled for _, puppet in begun] == [0, 1, 0, 0]
        begun[0][1].say(" and on")
        begun[0][1].end()
        begun[2][1].end(Failed("upstream_error", "On fire."))
        begun[3][1].end()
        outcomes = [await staged.outcome(run_id) for run_id, _ in begun]
        assert outcomes == [Completed("stop"), Stopped("user"), Failed("upstream_error", "On fire."), Completed("stop")]
        saved = [[item for item in await staged.transcript(pane) if item[0] == "assistant"] for pane in panes]
        assert saved == [
            [("assistant", "so far and on", "complete")],
            [("assistant", "so far", "partial")],
            [("assistant", "so far", "partial")],
            [("assistant", "so far", "complete")],
        ]
        # Nothing is in the list of sessions until one is picked to go on with.
        assert (await staged.store.sessions(OWNER)).sessions == ()
        await staged.store.pick(OWNER, group.id, panes[3])
        assert [session.id for session in (await staged.store.sessions(OWNER)).sessions] == [panes[3]]
