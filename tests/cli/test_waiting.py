"""What waits, said where there is no terminal to ask at: a tool for an answer, a message behind a run, a queue."""

import json
import urllib.request
from typing import Any

from headwater.cli import exits
from tests.cli.conftest import House
from tests.commands import start


def ask(house: House, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(house.url + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


class TestApprovals:
    def test_a_tool_waits_for_an_answer_until_there_is_one(self, house: House) -> None:
        with start("chat", "-m", "demo/agent", "Roll the dice, then send a postcard", environ=house.environ) as process:
            assert process.stderr is not None
            while "waits for your answer" not in (line := process.stderr.readline()):
                assert line
            run_id = line.split()[-1]
            events = [json.loads(line) for line in _log_so_far(house, run_id)]
            asked = next(event for event in events if event["type"] == "approval")
            answer = {"decision": "yes", "arguments_digest": asked["arguments_digest"]}
            ask(house, "POST", f"/api/runs/{run_id}/approvals/{asked['call_id']}", answer)
            process.communicate(timeout=120)
            assert process.returncode == exits.COMPLETED
        code, out, err = house.run("attach", run_id)
        assert code == exits.COMPLETED
        assert out
        assert "✓ demo__postcard" in err
        assert "waits for your answer" not in err


def _log_so_far(house: House, run_id: str) -> list[str]:
    found: list[str] = []
    with start("attach", run_id, "--json", environ=house.environ) as process:
        assert process.stdout is not None
        while '"approval"' not in (line := process.stdout.readline()):
            found.append(line)
        process.kill()
    return [*found, line]


class TestBusy:
    def test_the_run_that_is_in_the_way_is_named_with_what_can_be_done(self, house: House) -> None:
        asked = ("chat", "--json", "--session", "busy", "-m", "sim/hold", "?")
        with start(*asked, environ=house.environ) as process:
            assert process.stdout is not None
            run_id = json.loads(process.stdout.readline())["run_id"]
            assert house.run("chat", "--session", "busy", "-m", "demo/echo", "more") == (
                exits.USAGE,
                "",
                f"headwater: a run of this conversation goes on: {run_id}\n"
                f"To follow it: headwater attach {run_id}\nTo stop it: headwater stop {run_id}\n",
            )
            assert house.run("stop", run_id)[0] == exits.COMPLETED
            process.communicate(timeout=120)


def queue_two(house: House, session: str) -> str:
    """Behind a run that holds; its id."""
    ask(house, "POST", "/api/sessions", {"id": session})
    path = f"/api/sessions/{session}/messages"
    held = ask(house, "POST", path, {"content": "hold", "model": "sim/hold"})
    for content in ("one more", "and another"):
        ask(house, "POST", path, {"content": content, "model": "demo/echo", "multitask": "queue"})
    return str(held["run"]["id"])


def said(house: House, session: str) -> list[str]:
    _, out, _ = house.run("sessions", "show", session, "--json")
    return [item["content"] for item in map(json.loads, out.splitlines()) if item["kind"] == "message"]


class TestQueues:
    def test_what_waits_is_shown_and_a_paused_queue_is_let_go_on(self, house: House) -> None:
        run_id = queue_two(house, "line")
        assert house.run("sessions", "show", "line")[1].endswith(
            "(2 messages wait for their turn.)\n  1. one more\n  2. and another\n"
        )
        assert house.run("stop", run_id)[0] == exits.COMPLETED
        assert house.run("sessions", "show", "line")[1].endswith(
            "(2 messages wait: the queue is paused. To let it go on: headwater sessions resume line)\n"
            "  1. one more\n  2. and another\n"
        )
        lines = [json.loads(line) for line in house.run("sessions", "show", "line", "--json")[1].splitlines()]
        waiting = [(one["content"], one["paused"]) for one in lines if one["kind"] == "queued"]
        assert waiting == [("one more", True), ("and another", True)]
        code, out, err = house.run("chat", "--session", "line", "-m", "demo/echo", "before them")
        assert (code, out) == (exits.COMPLETED, "before them\n")
        assert (
            err == "headwater: 2 messages wait: the queue is paused. To let it go on: headwater sessions resume line\n"
        )
        code, out, err = house.run("sessions", "resume", "line")
        assert (code, err) == (exits.COMPLETED, "")
        first, second = out.splitlines()
        assert (first.split(": ")[0], second.split(": ")[0]) == ("one more", "and another")
        assert house.run(*second.split(": ")[1].split()[1:])[:2] == (exits.COMPLETED, "and another\n")
        assert said(house, "line")[-4:] == ["one more", "one more", "and another", "and another"]
        assert house.run("sessions", "resume", "line") == (exits.COMPLETED, "", "headwater: nothing waits in line.\n")

    def test_without_a_server_it_is_followed_to_its_end_since_it_would_end_with_the_command(self, empty: House) -> None:
        empty.start()
        queue_two(empty, "line")
        empty.kill()
        assert "the queue is paused" in empty.run("sessions", "show", "line")[1]
        code, out, err = empty.run("sessions", "resume", "line")
        assert (code, out) == (exits.COMPLETED, "one more\nand another\n")
        assert err == "headwater: › one more\nheadwater: › and another\n"
        assert said(empty, "line")[-4:] == ["one more", "one more", "and another", "and another"]

    def test_what_goes_wrong_pauses_it_again(self, empty: House) -> None:
        empty.start()
        path = "/api/sessions/line/messages"
        queue_two(empty, "line")
        ask(empty, "POST", path, {"content": "refuse", "model": "demo/flaky", "multitask": "queue"})
        ask(empty, "POST", path, {"content": "too late", "model": "demo/echo", "multitask": "queue"})
        empty.kill()
        code, out, err = empty.run("sessions", "resume", "line")
        assert (code, out) == (exits.FAILED, "one more\nand another\n")
        assert err.endswith("1 message waits: the queue is paused. To let it go on: headwater sessions resume line\n")
