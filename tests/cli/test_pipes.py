"""Where there is no terminal: the answer on stdout, all else on stderr, an event a line, and exit codes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwater.cli import exits
from tests.cli.conftest import House
from tests.commands import finished, start


def piped(house: House, text: str, *arguments: str) -> tuple[int, str, str]:
    with start(*arguments, environ=house.environ, stdin=subprocess.PIPE) as process:
        out, err = process.communicate(text, timeout=120)
        return process.returncode, out, err


class TestAnswers:
    def test_the_answer_alone_is_on_stdout(self, house: House) -> None:
        assert house.run("chat", "-m", "demo/echo", "Hello,", "world") == (0, "Hello, world\n", "")

    def test_what_is_piped_in_follows_the_question(self, house: House) -> None:
        assert piped(house, "line\n", "chat", "-m", "demo/echo", "Read this:")[1] == "Read this:\n\nline\n"
        assert piped(house, "only\n", "chat", "-m", "demo/echo")[1] == "only\n"

    def test_nothing_asked_is_a_mistake(self, house: House) -> None:
        code, out, err = house.run("chat", "-m", "demo/echo")
        assert (code, out) == (exits.USAGE, "")
        assert "what is the question?" in err

    def test_reasoning_is_beside_the_answer_or_is_all_of_it(self, house: House) -> None:
        asked = ("chat", "-m", "sim/sim/think-3,tokens-2", "?")
        assert house.run(*asked) == (0, "t0 t1 \n", "")
        code, out, err = house.run(*asked, "--reasoning", "show")
        assert (code, out, err.split()) == (0, "t0 t1 \n", ["r0", "r1", "r2"])
        assert house.run(*asked, "--reasoning", "only")[1].split() == ["r0", "r1", "r2"]

    def test_events_a_line_each(self, house: House) -> None:
        code, out, _ = house.run("chat", "--json", "-m", "sim/sim/tokens-3", "?")
        events = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert (events[0]["type"], events[-1]["type"]) == ("started", "ended")
        assert "".join(event["text"] for event in events if event["type"] == "text") == "t0 t1 t2 "

    def test_a_conversation_goes_on(self, house: House) -> None:
        house.run("chat", "--session", "mine", "-m", "demo/echo", "first")
        house.run("chat", "-c", "second")
        _, out, _ = house.run("sessions", "show", "mine", "--json")
        items = [json.loads(line) for line in out.splitlines()]
        assert [item["content"] for item in items] == ["first", "first", "second", "second"]

    def test_instructions_and_images_reach_the_model(self, house: House, tmp_path: Path) -> None:
        image = tmp_path / "dot.png"
        image.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 32)
        assert house.run("chat", "-m", "demo/echo", "-s", "Be brief.", "-a", str(image), "see")[0] == 0
        _, out, _ = house.run("sessions", "show", "last", "--json")
        asked = json.loads(out.splitlines()[0])
        assert [part["type"] for part in asked["parts"]] == ["image"]
        text = tmp_path / "text.png"
        text.write_text("no image")
        code, _, err = house.run("chat", "-m", "demo/echo", "-a", str(text), "see")
        assert (code, "is no PNG" in err) == (exits.USAGE, True)

    def test_a_reader_who_leaves_stops_the_run(self, house: House) -> None:
        with start("chat", "--json", "-m", "sim/sim/tokens-5000@200", "?", environ=house.environ) as process:
            assert process.stdout is not None
            started = json.loads(process.stdout.readline())
            process.stdout.close()
            assert process.wait(60) == exits.PIPE_CLOSED
        _, out, _ = house.run("runs", "--json")
        runs = {run["id"]: run for run in map(json.loads, out.splitlines())}
        assert runs[started["run_id"]]["status"] == "stopped"


ENDINGS = [
    ("demo/echo", "done", exits.COMPLETED, ""),
    ("demo/flaky", "length after 3", exits.INCOMPLETE, "token limit. The 3 words that had come are kept"),
    ("demo/flaky", "close after 3", exits.FAILED, "Failed (upstream truncated)"),
    ("demo/flaky", "refuse", exits.FAILED, "was told to refuse this"),
]


class TestExitCodes:
    @pytest.mark.parametrize(("model", "prompt", "code", "said"), ENDINGS)
    def test_an_ending_has_its_own(self, house: House, model: str, prompt: str, code: int, said: str) -> None:
        got, _, err = house.run("chat", "-m", model, prompt)
        assert got == code
        assert said in err

    def test_stopped_by_somebody_else(self, house: House) -> None:
        with start("chat", "--json", "-m", "sim/hold", "?", environ=house.environ) as process:
            assert process.stdout is not None
            run_id = json.loads(process.stdout.readline())["run_id"]
            while "six" not in process.stdout.readline():
                pass
            code, out, _ = house.run("stop", run_id)
            assert (code, out) == (0, "Stopped. The 6 words that had come are kept.\n")
            assert process.wait(60) == exits.STOPPED
            process.stdout.close()
        assert house.run("stop", run_id)[1] == "It had ended before: stopped: user.\n"
        assert house.run("attach", run_id[-8:]) == (
            exits.STOPPED,
            "one two three four five six \n",
            "headwater: Stopped. The 6 words that had come are kept.\n",
        )

    def test_interrupted_by_the_death_of_the_server(self, empty: House) -> None:
        empty.start()
        with start("chat", "--json", "-m", "sim/hold", "?", environ=empty.environ) as process:
            assert process.stdout is not None
            while "six" not in process.stdout.readline():
                pass
            empty.kill()
            # At another port: the database's lock says where.
            empty.start()
            out, err = process.communicate(timeout=120)
        assert process.returncode == exits.INTERRUPTED
        assert json.loads(out.splitlines()[-1])["outcome"]["type"] == "interrupted"
        assert "reconnecting" in err
        empty.stop()

    def test_no_server(self, house: House) -> None:
        code, _, err = house.run("runs", "--server", "http://127.0.0.1:9")
        assert code == exits.NO_SERVER
        assert "can't be reached" in err

    def test_usage(self, house: House) -> None:
        assert house.run("chat", "--no-such-option")[0] == exits.USAGE
        assert house.run("attach", "run_none")[0] == exits.USAGE
        # Refused by the server.
        assert house.run("chat", "--session", "no such/id", "-m", "demo/echo", "?")[0] == exits.USAGE
        assert house.run("runs", "--server", "ftp://x")[0] == exits.USAGE

    def test_a_script_of_the_simulator_that_is_not_there_or_wrong_is_a_mistake(self, tmp_path: Path) -> None:
        gone, wrong = tmp_path / "nope.toml", tmp_path / "wrong.toml"
        wrong.write_text("[models.m]\nanswer = []")
        what = "can't be read: No such file or directory.\n"
        assert finished("simulate", str(gone)) == (exits.USAGE, "", f"headwater: {gone} {what}")
        assert finished("simulate", "--replay", str(gone)) == (exits.USAGE, "", f"headwater: {gone} {what}")
        code, _, err = finished("simulate", str(wrong))
        assert (code, f"{wrong}: models.m: unknown key `answer`; did you mean `answers`?" in err) == (exits.USAGE, True)


class TestComparing:
    def test_answers_come_one_after_the_other_and_the_worst_ending_counts(self, house: House) -> None:
        code, out, err = house.run("compare", "-m", "demo/echo", "-m", "demo/flaky", "refuse")
        assert code == exits.FAILED
        assert out == "## demo/echo\n\nrefuse\n\n## demo/flaky\n\n\n\n"
        assert "demo/flaky: Failed" in err
        assert house.run("compare", "-m", "demo/echo", "alone")[0] == exits.USAGE
        assert house.run("compare", "-m", "demo/echo", "-m", "demo/echo", "--pick", "3", "?")[0] == exits.USAGE

    def test_one_is_picked_to_go_on_with(self, house: House) -> None:
        code, _, err = house.run("compare", "-m", "demo/echo", "-m", "sim/sim/tokens-2", "--pick", "1", "the heron")
        assert code == 0
        said, command = err.splitlines()
        assert (said, command.split()[:3]) == ("To go on:", ["headwater", "chat", "--session"])
        assert "the heron" in house.run("sessions", "show", command.split()[3])[1]

    def test_events_say_whose_they_are(self, house: House) -> None:
        code, out, _ = house.run("compare", "--json", "-m", "sim/sim/tokens-2", "-m", "sim/sim/tokens-3", "?")
        events = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        said = dict.fromkeys(("sim/sim/tokens-2", "sim/sim/tokens-3"), "")
        for event in events:
            said[event["asked"]] += event.get("text", "")
        assert list(said.values()) == ["t0 t1 ", "t0 t1 t2 "]


class TestServers:
    def test_without_one_there_is_one_for_the_command_alone(self, empty: House) -> None:
        assert empty.run("chat", "-m", "demo/echo", "embedded") == (0, "embedded\n", "")
        _, out, _ = empty.run("sessions", "list", "--json")
        assert json.loads(out)["title"] == "embedded"
        assert empty.run("attach", "last")[:2] == (0, "embedded\n")

    def test_the_one_that_holds_the_database_is_found_and_the_file_is_left_alone(self, house: House) -> None:
        house.run("chat", "--session", "found", "-m", "demo/echo", "hi")
        holder = (house.folder / "headwater.db.lock").read_text()
        assert house.url in holder
        assert house.run("sessions", "show", "found", "--server", house.url)[0] == 0
        assert (house.folder / "headwater.db.lock").read_text() == holder

    def test_an_embedded_one_is_found_by_others_while_it_lasts(self, empty: House) -> None:
        with start("chat", "--json", "-m", "sim/hold", "?", environ=empty.environ) as process:
            assert process.stdout is not None
            run_id = json.loads(process.stdout.readline())["run_id"]
            assert empty.run("stop", run_id)[0] == 0
            assert process.wait(60) == exits.STOPPED
            process.stdout.close()

    def test_a_key_is_sent_where_one_is_needed(self, empty: House) -> None:
        _, key, _ = empty.run("keys", "create", "ann")
        empty.start()
        code, _, err = empty.run("models")
        assert code == exits.USAGE
        assert "--key, or in HEADWATER_KEY" in err
        assert empty.run("models", "--key", key.strip())[0] == 0
        assert empty.run("models", environ={"HEADWATER_KEY": key.strip()})[0] == 0
        empty.stop()

    def test_a_database_held_by_nobody_who_answers_is_not_opened(self, empty: House) -> None:
        empty.start()
        assert empty.server is not None
        empty.server.send_signal(19)  # SIGSTOP
        try:
            began_s = time.monotonic()
            code, _, err = empty.run("chat", "-m", "demo/echo", "?")
            assert code == exits.NO_SERVER
            assert "did not answer" in err
            assert time.monotonic() - began_s < 60
        finally:
            empty.server.send_signal(18)  # SIGCONT
            empty.stop()


class TestLooking:
    def test_runs_and_models(self, house: House) -> None:
        house.run("chat", "-m", "demo/echo", "a run")
        _, out, _ = house.run("runs")
        assert out.splitlines()[0].split() == ["RUN", "STATUS", "TOOK", "TOKENS", "STARTED", "MODEL"]
        assert "completed" in out.splitlines()[1]
        assert "demo/story" in house.run("models")[1]

    def test_a_timeline_has_times_and_gathers_pieces(self, house: House) -> None:
        house.run("chat", "-m", "sim/sim/tokens-30@100", "?")
        _, out, _ = house.run("events", "last")
        lines = [line.split(None, 3) for line in out.splitlines()]
        assert [line[2] for line in lines[:3]] == ["started", "attempt", "text"]
        assert lines[2][3].startswith("30 pieces in 0.")
        assert lines[-1][2:] == ["ended", "completed: stop"]
        assert [float(line[0]) for line in lines] == sorted(float(line[0]) for line in lines)
        assert house.run("events", "last", "--all")[1].count(" text ") == 30

    def test_sessions_are_found_shown_taken_away_and_deleted(self, house: House, tmp_path: Path) -> None:
        house.run("chat", "--session", "gone", "-m", "demo/echo", "the kingfisher")
        assert "kingfisher" in house.run("sessions", "search", "kingfisher")[1]
        assert house.run("sessions", "search", "albatross")[0] == exits.FAILED
        assert "## user\n\nthe kingfisher" in house.run("sessions", "show", "gone")[1]
        assert "the kingfisher" in house.run("sessions", "export", "gone")[1]
        file = tmp_path / "gone.json"
        assert house.run("sessions", "export", "gone", "-f", "json", "-o", str(file))[0] == 0
        assert json.loads(file.read_text())
        assert "nothing was deleted" in house.run("sessions", "delete", "gone")[2]
        assert house.run("sessions", "delete", "gone", "--yes")[0] == 0
        assert house.run("sessions", "show", "gone")[0] == exits.USAGE

    def test_sessions_are_listed_by_default_with_the_same_options(self, house: House) -> None:
        house.run("chat", "-m", "demo/echo", "to be listed")
        options = ("--limit", "1", "--json", "--server", house.url, "--key", "any")
        assert house.run("sessions", *options) == house.run("sessions", "list", *options)
        assert len(house.run("sessions", "-n", "1")[1].splitlines()) == 1
        assert house.run("sessions") == house.run("sessions", "list")
        assert "COMMAND" in house.run("sessions", "--help")[1]
        # Said of one command, and meant for another.
        assert house.run("sessions", "--json", "show", "last")[0] == exits.USAGE

    def test_serve_says_what_it_found_and_why_others_are_missing(self, tmp_path: Path, simulator: str) -> None:
        (tmp_path / "headwater.toml").write_text(
            f'[upstreams.here]\nbase_url = "{simulator}/v1"\n[upstreams.there]\nbase_url = "http://127.0.0.1:9/v1"\n'
        )
        with start("serve", "--port", "0", folder=tmp_path) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(6)]
            process.kill()
        said = "".join(lines)
        assert "data: memory:" in said
        assert "here/story" in said
        assert "its models are missing: No connection to 127.0.0.1:9" in said


def test_help_and_runs_import_nothing_of_the_server(house: House) -> None:
    world = ("starlette", "uvicorn", "apsw", "rich", "prompt_toolkit", "headwater.server", "headwater.store")
    for arguments in (["--help"], ["runs"]):
        code = f"""
import sys
sys.argv = ["headwater", *{arguments!r}]
from headwater.cli import main
try:
    main()
finally:
    print([name for name in sys.modules if name.startswith({world!r})])
"""
        environ = {**house.environ, "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin"}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)
        assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
