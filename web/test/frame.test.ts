import { beforeEach, expect, test } from "vitest";
import { Painter, type Screen } from "../src/frame";

/** A screen with a clock that only goes where it is told to. */
class Still implements Screen {
  ms = 0;
  /** What the browser takes for a frame. */
  frameMs = 4;
  private readonly timers = new Map<() => void, number>();
  private readonly frames = new Set<() => void>();
  private readonly done: (() => void)[] = [];
  private readonly painted: (() => void)[] = [];

  now(): number {
    return this.ms;
  }

  after(ms: number, act: () => void): () => void {
    const once = () => act();
    this.timers.set(once, this.ms + ms);
    return () => this.timers.delete(once);
  }

  onDone(act: () => void): void {
    this.done.push(act);
  }

  onFrame(act: () => void): () => void {
    this.frames.add(act);
    return () => this.frames.delete(act);
  }

  onPainted(act: () => void): void {
    this.painted.push(act);
  }

  /** Goes on to `ms`, as far as timers are concerned. */
  pass(ms: number): void {
    const until = this.ms + ms;
    for (;;) {
      const due = [...this.timers].filter(([, at]) => at <= until).sort((a, b) => a[1] - b[1])[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.ms = Math.max(this.ms, due[1]);
      try {
        due[0]();
      } finally {
        for (let act = this.done.shift(); act; act = this.done.shift()) act();
      }
    }
    this.ms = Math.max(this.ms, until);
  }

  frame(): void {
    const begun = [...this.frames];
    this.frames.clear();
    for (const act of begun) act();
    this.ms += this.frameMs;
    for (const act of this.painted.splice(0)) act();
  }
}

let screen: Still;
let painter: Painter;
let shown: string[];

beforeEach(() => {
  screen = new Still();
  painter = new Painter(screen);
  shown = [];
});

/** Something that takes `ms` to be made. */
function paint(name: string, ms = 0): () => void {
  return () => {
    shown.push(name);
    screen.ms += ms;
  };
}

test("what is asked for many times before a frame is made once", () => {
  const words = paint("words");
  for (let n = 0; n < 100; n++) painter.ask(words);
  screen.pass(0);
  expect(shown).toEqual(["words"]);
});

test("nothing more is made until what was made is shown", () => {
  const words = paint("words");
  painter.ask(words);
  screen.pass(0);
  painter.ask(words);
  screen.pass(100);
  expect(shown).toEqual(["words"]);
  screen.frame();
  screen.pass(100);
  expect(shown).toEqual(["words", "words"]);
});

test("the page rests for twice as long as a paint took", () => {
  const words = paint("words", 6);
  painter.ask(words);
  screen.pass(0);
  screen.frame();
  painter.ask(words);
  // 6 ms to make it and 4 ms for the browser.
  screen.pass(19);
  expect(shown).toEqual(["words"]);
  screen.pass(1);
  expect(shown).toEqual(["words", "words"]);
});

test("but never longer than a moment", () => {
  const words = paint("words", 1000);
  painter.ask(words);
  screen.pass(0);
  screen.frame();
  painter.ask(words);
  screen.pass(150);
  expect(shown).toEqual(["words", "words"]);
});

test("what has waited already is not kept waiting by a rest", () => {
  const words = paint("words", 30);
  painter.ask(words);
  screen.pass(0);
  painter.ask(words);
  screen.frame();
  screen.pass(200);
  expect(shown).toEqual(["words", "words"]);
});

test("what there is already needs no rest between its parts", () => {
  const rest = paint("rest", 30);
  painter.askSoon(rest);
  screen.pass(0);
  screen.frame();
  painter.askSoon(rest);
  screen.pass(0);
  expect(shown).toEqual(["rest", "rest"]);
});

test("what there is no time for comes with the next frame, and first", () => {
  const panes = ["a", "b", "c"].map((name) => paint(name, 5));
  for (const pane of panes) painter.ask(pane);
  screen.pass(0);
  expect(shown).toEqual(["a", "b"]);
  painter.ask(panes[0]!);
  screen.frame();
  screen.pass(150);
  expect(shown).toEqual(["a", "b", "c", "a"]);
});

test("what can't be made keeps nobody else from it", () => {
  painter.ask(() => {
    throw new Error("broken");
  });
  painter.ask(paint("words"));
  expect(() => screen.pass(0)).toThrow("broken");
  screen.pass(0);
  expect(shown).toEqual(["words"]);
});

test("a window without frames is painted all the same", () => {
  const words = paint("words");
  painter.ask(words);
  screen.pass(0);
  painter.ask(words);
  screen.pass(250);
  expect(shown).toEqual(["words", "words"]);
});
