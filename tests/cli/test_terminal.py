"""A person at a real terminal: what is seen, and what keys do."""

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from headwater.cli import exits
from headwater.cli.paint import Painter, blocks
from headwater.simulate.load import load_scenario
from tests.cli.conftest import STORY, House
from tests.cli.terminal import PATIENCE_S, Terminal, terminal

PROMPT = "›"


def letters(lines: list[str]) -> str:
    return "".join(char for line in lines for char in line if char.isalnum())


def story() -> str:
    text = load_scenario(STORY.read_bytes(), "story").models["story"].answers[0].text
    assert text is not None
    return text


def drawn(width: int) -> str:
    painter = Painter(width)
    return letters([line.plain for block in blocks(story()) for line in painter.block(block)])


def tokens(seen: Terminal) -> list[str]:
    return re.findall(r"\bt\d+\b", seen.text())


def numbered(count: int) -> list[str]:
    return [f"t{n}" for n in range(count)]


class TestAnswers:
    @pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 12)])
    def test_a_long_answer_is_printed_once_and_whole(self, house: House, columns: int, rows: int) -> None:
        asked = ("chat", "-m", "sim/story", "?")
        with terminal(*asked, environ=house.environ, columns=columns, rows=rows) as seen:
            assert seen.wait_for_end() == exits.COMPLETED
            assert letters(seen.lines()) == drawn(columns - 1)
            # The terminal is as it was: a cursor, and no footer.
            assert seen.raw.rstrip().endswith(b"\x1b[?25h")
            assert "Ctrl-C" not in seen.text()
            assert not any(len(line) > columns for line in seen.lines())
            # The heading was drawn while it grew, and never after: only the tail is drawn again.
            assert seen.raw.count(b"The river") <= 3
            assert seen.raw.count(b"\x1b[2J") == 0

    def test_a_resize_in_mid_answer_repeats_and_cuts_nothing(self, house: House) -> None:
        """Only the program is told: lines that are too long now the emulator would cut. In tmux they are wrapped."""
        with terminal("chat", "-m", "sim/sim/tokens-240@100", "?", environ=house.environ, columns=80) as seen:
            for n, (columns, rows) in enumerate([(44, 12), (70, 20), (30, 10)], start=1):
                seen.wait_for(f"t{40 * n}")
                seen.resize(columns, rows)
            assert seen.wait_for_end() == 0
            assert tokens(seen) == numbered(240)

    def test_reasoning_is_dim_and_can_be_hidden(self, house: House) -> None:
        asked = ("chat", "-m", "sim/sim/think-4,tokens-3", "?")
        with terminal(*asked, environ=house.environ) as seen:
            seen.wait_for_end()
            assert re.search(rb"\x1b\[2mr0 r1 r2 r3", seen.raw)
            assert letters(seen.lines()) == "r0r1r2r3t0t1t2"
        with terminal(*asked, "--reasoning", "hide", environ=house.environ) as seen:
            seen.wait_for_end()
            assert letters(seen.lines()) == "t0t1t2"

    def test_a_model_cannot_steer_the_terminal(self, house: House) -> None:
        said = "\x1b[2Jgone\x1b]0;title\x07 \x9b31mred"
        with terminal("chat", "-m", "demo/echo", said, environ=house.environ) as seen:
            assert seen.wait_for_end() == 0
            assert b"\x1b[2J" not in seen.raw
            assert b"\x1b]0;" not in seen.raw
            assert "2Jgone" in seen.text()


class TestStopping:
    def test_ctrl_c_stops_and_says_what_was_kept_and_again_it_exits(self, house: House) -> None:
        with terminal("chat", "-m", "sim/hold", environ=house.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("six")
            seen.ctrl_c()
            seen.wait_for("Stopped. The 6 words that had come are kept.")
            seen.wait_for(PROMPT, count=2)
            seen.ctrl_c()
            assert seen.wait_for_end() == exits.CTRL_C
            assert seen.text().count("one two three four five six") == 1

    def test_twice_it_leaves_at_once(self, empty: House) -> None:
        """Also if the server does not answer any more."""
        empty.start()
        assert empty.server is not None
        with terminal("chat", "-m", "sim/hold", "?", environ=empty.environ) as seen:
            seen.wait_for("six")
            empty.server.send_signal(signal.SIGSTOP)
            seen.ctrl_c()
            seen.wait_for("stopping")
            seen.ctrl_c()
            assert seen.wait_for_end() == exits.CTRL_C
        empty.server.send_signal(signal.SIGCONT)
        empty.stop()

    def test_one_question_that_is_stopped_has_its_exit_code(self, house: House) -> None:
        with terminal("chat", "-m", "sim/hold", "?", environ=house.environ) as seen:
            seen.wait_for("six")
            seen.ctrl_c()
            assert seen.wait_for_end() == exits.STOPPED
            assert "The 6 words that had come are kept." in seen.text()


class TestLeaving:
    def test_detached_it_goes_on_and_attached_it_is_all_there(self, house: House) -> None:
        with terminal("chat", "-m", "sim/sim/tokens-150@60", environ=house.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("t20")
            seen.type("/detach\r")
            assert seen.wait_for_end() == exits.COMPLETED
            found = re.search(r"headwater attach (run_\w+)", seen.text())
            assert found
        with terminal("attach", found[1], environ=house.environ, columns=60, rows=15) as seen:
            assert seen.wait_for_end() == exits.COMPLETED
            assert tokens(seen) == numbered(150)

    def test_from_a_server_of_its_own_there_is_no_detaching(self, empty: House) -> None:
        with terminal("chat", "-m", "sim/sim/tokens-60@30", environ=empty.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("t5")
            seen.type("/detach\r")
            seen.wait_for("The server is in this very process")
            seen.wait_for("t59")
            seen.wait_for(PROMPT, count=2)
            assert tokens(seen) == numbered(60)
            seen.type("\x04")
            assert seen.wait_for_end() == exits.COMPLETED

    def test_a_server_that_dies_and_comes_back_tells_the_rest(self, empty: House) -> None:
        empty.start()
        with terminal("chat", "-m", "sim/hold", environ=empty.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("six")
            empty.kill()
            seen.wait_for("reconnecting")
            empty.start(empty.url.rpartition(":")[2])
            seen.wait_for("Interrupted: the server went away. The 6 words that had come are kept.")
            seen.wait_for(PROMPT, count=2)
            assert seen.text().count("one two three four five six") == 1
            # It is the same conversation, on the new server.
            seen.type("/model demo/echo\r")
            seen.wait_for("You talk with demo/echo.")
            seen.type("still here\r")
            seen.wait_for("still here", count=2)
        empty.stop()

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGTERM, exits.TERMINATED), (signal.SIGHUP, exits.TERMINAL_LOST)]
    )
    def test_a_signal_in_mid_answer_gives_the_terminal_back(
        self, house: House, number: signal.Signals, code: int
    ) -> None:
        with terminal("chat", "-m", "sim/hold", environ=house.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("six")
            assert not seen.echoes()
            seen.process.send_signal(number)
            assert seen.wait_for_end() == code
            assert seen.echoes()
            assert not seen.emulated.cursor.hidden
            assert f"headwater: ended by {number.name}." in seen.text()
            assert "Ctrl-C stops" not in seen.text()
            found = re.search(r"The run goes on.*headwater attach (run_\w+)", seen.text(), re.DOTALL)
            assert found
        assert house.run("stop", found[1]) == (0, "Stopped. The 6 words that had come are kept.\n", "")

    def test_a_signal_elsewhere_gives_it_back_too(self, house: House, empty: House) -> None:
        """At the prompt, from a table, from a comparison; and from a server of its own, whose run ends with it."""
        asked: list[tuple[House, tuple[str, ...], str]] = [
            (house, ("chat", "-m", "demo/echo"), PROMPT),
            (house, ("runs",), "q leaves"),
            (house, ("compare", "-m", "sim/hold", "-m", "demo/echo", "?"), "six"),
            (empty, ("chat", "-m", "sim/hold", "?"), "six"),
        ]
        for where, arguments, wanted in asked:
            with terminal(*arguments, environ=where.environ) as seen:
                seen.wait_for(wanted)
                seen.process.send_signal(signal.SIGTERM)
                assert seen.wait_for_end() == exits.TERMINATED
                assert seen.echoes()
                assert not seen.emulated.cursor.hidden
        assert "The run ends with this process" in seen.text()
        assert "interrupted: shutdown" in empty.run("runs")[1]

    def test_a_terminal_that_is_closed_leaves_the_run_going(self, house: House) -> None:
        with terminal("chat", "--session", "closed", "-m", "sim/hold", "?", environ=house.environ) as seen:
            seen.wait_for("six")
            seen.hang_up()
            assert seen.process.wait(PATIENCE_S) == exits.TERMINAL_LOST
        assert '"running"' in house.run("runs", "--session", "closed", "--json")[1]


class TestTyping:
    def test_commands_are_completed_lines_are_many_and_history_is_kept(self, house: House, tmp_path: Path) -> None:
        environ = {**house.environ, "XDG_STATE_HOME": str(tmp_path)}
        with terminal("chat", "-m", "demo/echo", environ=environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("/mod")
            seen.wait_for("whom to ask from now on")
            seen.type("\t demo/st")
            seen.wait_for("demo/story")
            seen.type("\t")
            seen.wait_for("/model demo/story")
            seen.type("\x03")
            seen.type("first line\x1b\rsecond line\r")
            seen.wait_for("second line", count=2)
            seen.wait_for(PROMPT, count=2)
            seen.type("/help\r")
            seen.wait_for("go on with an answer that was cut")
            seen.type("/nonsense\r")
            seen.wait_for("/nonsense is no command")
            seen.type("/quit\r")
            assert seen.wait_for_end() == exits.COMPLETED
        history = tmp_path / "headwater" / "history"
        assert history.stat().st_mode & 0o777 == 0o600
        with terminal("chat", "-c", environ=environ) as seen:
            # What was said is shown, and what was typed can be had again.
            seen.wait_for("first line", count=2)
            seen.wait_for(PROMPT)
            seen.type("\x1b[A\x1b[A\x1b[A")
            seen.wait_for("/help")
            seen.type("\x03\x04")
            seen.wait_for_end()

    def test_what_is_typed_meanwhile_is_in_the_next_prompt(self, house: House) -> None:
        with terminal("chat", "-m", "sim/sim/tokens-40@40", environ=house.environ) as seen:
            seen.wait_for(PROMPT)
            seen.type("go\r")
            seen.wait_for("t3")
            seen.type("and then")
            seen.wait_for("› and then")
            seen.wait_for("t39")
            seen.wait_for("› and then", count=1)
            seen.type("?\r")
            seen.wait_for("and then?")
            seen.wait_for("t39", count=2)


class TestTools:
    def test_an_approval_is_asked_in_place(self, house: House) -> None:
        with terminal("chat", "-m", "demo/agent", "Roll the dice, then send a postcard", environ=house.environ) as seen:
            seen.wait_for("Run it?  [y]es")
            seen.type("y")
            assert seen.wait_for_end() == exits.COMPLETED
            assert "✓" in seen.text()
            assert "[y]es" not in seen.text()

    def test_a_tool_is_refused_with_a_reason(self, house: House) -> None:
        with terminal("chat", "-m", "demo/agent", "Roll the dice, then send a postcard", environ=house.environ) as seen:
            seen.wait_for("Run it?  [y]es")
            seen.type("n")
            seen.wait_for("Why not?")
            seen.type("no stamps\r")
            assert seen.wait_for_end() == exits.COMPLETED
            assert "✗" in seen.text()
        decided = [json.loads(line) for line in house.run("events", "last", "--json")[1].splitlines()]
        assert "no stamps" in json.dumps(decided)


class TestComparing:
    def test_one_column_is_stopped_and_the_other_goes_on(self, house: House) -> None:
        """C80, C81."""
        asked = ("compare", "-m", "sim/hold", "-m", "sim/sim/tokens-60@40", "?")
        with terminal(*asked, environ=house.environ) as seen:
            seen.wait_for("six")
            seen.type("1")
            seen.wait_for("Go on with one of them? 1 to 2")
            seen.type("2")
            assert seen.wait_for_end() == exits.STOPPED
            picked = re.search(r"headwater chat --session (\S+)", seen.text())
            assert picked
            assert seen.echoes()
            printed = seen.text().rpartition("1 sim/hold · stopped")[2]
            assert re.findall(r"\bt\d+\b", printed) == numbered(60)
            assert "2 sim/sim/tokens-60@40 · complet" in printed
            assert "Stopped. The 6 words" in printed
        # The other one is hidden.
        assert house.run("chat", "--session", picked[1], "-m", "demo/echo", "on it goes")[1] == "on it goes\n"
        shown = house.run("sessions", "show", "last", "--json")[1].splitlines()
        assert [len(shown), '"t0 t1' in shown[1]] == [4, True]


class TestTables:
    def test_runs_are_kept_up_to_date(self, house: House) -> None:
        house.run("chat", "-m", "demo/echo", "a run")
        with terminal("runs", environ=house.environ, columns=40, rows=12) as seen:
            seen.wait_for("q leaves")
            assert "completed" in seen.text()
            house.run("chat", "-m", "demo/flaky", "refuse")
            seen.wait_for("failed")
            seen.type("q")
            assert seen.wait_for_end() == 0
            assert not any(len(line) > 40 for line in seen.lines())


def test_letters_are_counted() -> None:
    """The tests above would pass on an empty screen otherwise."""
    assert Counter(drawn(40)) == Counter(drawn(80))
    assert len(drawn(80)) > 500
