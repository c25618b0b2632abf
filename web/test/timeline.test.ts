import { describe, expect, it } from "vitest";
import { phaseAt, wordsBy } from "../src/reading";
import {
  bendPath,
  fastest,
  lanesOf,
  riverPath,
  rowsOf,
  streamsOf,
  ticksOf,
  tickText,
  withRoom,
} from "../src/river";
import { timelineOf } from "../src/timeline";
import type { LogEvent } from "../src/wire";

type Bare = LogEvent extends infer E ? (E extends LogEvent ? Omit<E, "seq" | "run_id"> : never) : never;

function log(...events: Bare[]): LogEvent[] {
  return events.map((event, seq) => ({ ...event, seq, run_id: "run_1" }) as LogEvent);
}

const STARTED: Bare = { type: "started", model: "fast", at: "2026-11-16T06:00:00Z", t: 0 };
const FIRST: Bare = { type: "attempt", upstream: "a", model: "m1", t: 5 };
const BROKEN: Bare = {
  type: "attempt_end",
  status: 503,
  failed: { type: "failed", reason: "upstream_error", message: "Overloaded." },
  t: 100,
};

function words(from: number, count: number, every: number): Bare[] {
  return Array.from({ length: count }, (_, n) => ({
    type: "text" as const,
    text: `t${n} `,
    t: from + n * every,
  }));
}

/** Failed, tried again, fallen back, answered, stopped. */
function eventful(): LogEvent[] {
  return log(
    STARTED,
    FIRST,
    BROKEN,
    { type: "attempt", upstream: "a", model: "m1", reason: "retry", because: "Overloaded.", t: 400 },
    ...words(500, 3, 10),
    { ...BROKEN, t: 600 } as Bare,
    { type: "attempt", upstream: "b", model: "m2", reason: "fallback", because: "Overloaded.", t: 601 },
    { type: "reasoning", text: "Hm.", t: 900 },
    ...words(1000, 50, 20),
    ...words(4000, 5, 20),
    { type: "ended", outcome: { type: "stopped", reason: "user" }, t: 4100 },
  );
}

describe("a run's log as a timeline", () => {
  it("tells each attempt, why it was made and how it ended", () => {
    const { attempts } = timelineOf(eventful());
    expect(attempts.map((one) => [one.upstream, one.reason, one.status, one.givenUp])).toEqual([
      ["a", "first", 503, true],
      ["a", "retry", 503, true],
      ["b", "fallback", null, false],
    ]);
    expect(attempts.map((one) => [one.fromMs, one.firstMs, one.toMs])).toEqual([
      [5, null, 100],
      [400, 500, 600],
      [601, 900, 4100],
    ]);
  });

  it("counts only what stands", () => {
    const timeline = timelineOf(eventful());
    expect(timeline.firstMs).toBe(900);
    expect(timeline.lastMs).toBe(4080);
    expect(timeline.chars).toBe("Hm.".length + 10 * 3 + 40 * 4 + 5 * 3);
  });

  it("finds the silences, and not the usual pauses", () => {
    const { gaps } = timelineOf(eventful());
    expect(gaps).toEqual([{ fromMs: 1980, toMs: 4000, attempt: 2 }]);
    const slow = timelineOf(log(STARTED, FIRST, ...words(10, 10, 700)));
    expect(slow.gaps).toEqual([]);
  });

  it("tells a stall at the end as silence", () => {
    const { gaps } = timelineOf(log(STARTED, FIRST, ...words(10, 5, 10), { ...BROKEN, t: 9000 } as Bare));
    expect(gaps).toEqual([{ fromMs: 50, toMs: 9000, attempt: 0 }]);
  });

  it("has its moments in order, with the ending as it was decided", () => {
    const { moments, outcome } = timelineOf(eventful());
    expect(moments.map((moment) => moment.title)).toEqual([
      "Asked for",
      "First attempt",
      "Attempt failed",
      "Tried again",
      "First token",
      "Attempt failed",
      "Fell back",
      "First token",
      "Silence",
      "Stopped",
    ]);
    expect(outcome?.type).toBe("stopped");
    expect(moments.at(-1)?.tone).toBe("calm");
  });

  it("never calls a failure complete", () => {
    for (const type of ["failed", "incomplete", "stopped", "interrupted"] as const) {
      const { moments } = timelineOf(log(STARTED, { type: "ended", outcome: { type, reason: "x" }, t: 1 }));
      expect(moments.at(-1)?.tone).not.toBe("ok");
      expect(moments.at(-1)?.title).not.toBe("Completed");
    }
  });

  it("goes on to now while it runs", () => {
    const timeline = timelineOf(log(STARTED, FIRST, ...words(10, 3, 10)), 5000);
    expect(timeline.endMs).toBe(5000);
    expect(timeline.attempts[0]?.toMs).toBe(5000);
    expect(timeline.gaps).toHaveLength(1);
  });

  it("knows what tools did, and what nobody knows", () => {
    const { tools } = timelineOf(
      log(
        STARTED,
        FIRST,
        { type: "tool_call", index: 0, id: "c1", name: "clock", t: 10 },
        { type: "tool_call", index: 1, id: "c2", name: "write", t: 11 },
        { type: "tool_call", index: 2, id: "c3", name: "late", t: 12 },
        { type: "tool_run", call_id: "c1", t: 20 },
        { type: "tool_result", call_id: "c1", text: "noon", t: 50 },
        { type: "approval", call_id: "c2", name: "write", arguments: "{}", arguments_digest: "d", t: 60 },
        { type: "approved", call_id: "c2", decision: "yes", by: "me", t: 900 },
        { type: "tool_run", call_id: "c2", t: 901 },
        { type: "ended", outcome: { type: "interrupted", reason: "crash" }, t: 1000 },
      ),
    );
    expect(tools.map((tool) => [tool.name, tool.runMs, tool.toMs, tool.state])).toEqual([
      ["clock", 20, 50, "done"],
      ["write", 901, 1000, "unknown"],
      ["late", null, 1000, "dropped"],
    ]);
    expect(tools[1]?.waited).toEqual({ fromMs: 60, toMs: 900, decision: "yes" });
    expect(rowsOf(tools)).toEqual([0, 1, 2]);
  });

  it("says what was going on at any time", () => {
    const timeline = timelineOf(eventful());
    const phases = [0, 50, 200, 450, 550, 1500, 3000, 4100].map((t) => phaseAt(timeline, t).phase);
    expect(phases).toEqual([
      "waiting",
      "waiting",
      "between",
      "waiting",
      "coming",
      "coming",
      "silent",
      "over",
    ]);
    expect([0, 500, 505, 1000, 9999].map((t) => wordsBy(timeline.words, t))).toEqual([0, 1, 1, 5, 59]);
  });

  it("takes a log of 20,000 events at once", () => {
    const events = log(STARTED, FIRST, ...words(10, 20_000, 2), {
      type: "ended",
      outcome: { type: "completed" },
      t: 50_000,
    });
    const timeline = timelineOf(events);
    expect(timeline.words).toHaveLength(20_000);
    const streams = streamsOf(timeline.attempts[0]!, timeline.words, timeline.gaps, timeline.endMs / 250);
    expect(streams).toHaveLength(1);
    expect(streams[0]!.rates.length).toBeLessThanOrEqual(250);
  });
});

describe("the picture", () => {
  const timeline = timelineOf(eventful());

  it("has a lane for each upstream and model", () => {
    expect(lanesOf(timeline.attempts)).toEqual([
      { name: "a · m1", attempts: [0, 1] },
      { name: "b · m2", attempts: [2] },
    ]);
  });

  it("parts the river where the kind changes and where it is silent", () => {
    const streams = streamsOf(timeline.attempts[2]!, timeline.words, timeline.gaps, 20);
    expect(streams.map((stream) => [stream.kind, stream.fromMs])).toEqual([
      ["reasoning", 900],
      ["text", 1000],
      ["text", 4000],
    ]);
    // 50 tokens a second, wherever one looks.
    for (const rate of streams[1]!.rates) expect(rate).toBeCloseTo(50, 0);
    expect(fastest(streams)).toBeGreaterThanOrEqual(50);
  });

  it("is a closed path round its middle", () => {
    const [stream] = streamsOf(timeline.attempts[2]!, timeline.words, timeline.gaps, 20);
    const path = riverPath(
      stream!,
      (ms) => ms / 10,
      50,
      () => 10,
    );
    expect(path).toMatch(/^M90 44L.*Z$/);
    expect(bendPath(0, 5, 90, 5)).toBe("M0 5L90 5");
    expect(bendPath(0, 5, 9, 50)).toContain("C0 27.5");
    expect(bendPath(0, 5, 200, 50)).toContain("C60 5");
  });

  it("has round times on its axis", () => {
    expect(ticksOf(3400, 1000)).toEqual([0, 500, 1000, 1500, 2000, 2500, 3000]);
    expect([0, 200, 1500, 60_000, 90_000, 7_200_000].map(tickText)).toEqual([
      "0",
      "200 ms",
      "1.5 s",
      "1 min",
      "1:30 min",
      "2 h",
    ]);
    expect(ticksOf(1e9, 400).length).toBeLessThan(8);
  });

  it("shows labels only where there is room, the first first", () => {
    const labels = [
      { x: 50, width: 40 },
      { x: 0, width: 45 },
      { x: 0, width: 30 },
    ];
    expect(withRoom(labels)).toEqual([labels[0], labels[2]]);
  });
});
