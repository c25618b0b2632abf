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
