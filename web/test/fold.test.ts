import { expect, test } from "vitest";
import { apply, type Call, newFold, partsOf, ranTools, rowsOf } from "../src/fold";
import type { Item, LogEvent } from "../src/wire";

type Bare = LogEvent extends infer E ? (E extends LogEvent ? Omit<E, "seq" | "t" | "run_id"> : never) : never;

function folded(...events: Bare[]) {
  const fold = newFold("run_a", "m");
  events.forEach((event, seq) => {
    apply(fold, { seq, t: seq * 100, run_id: "run_a", ...event } as LogEvent);
  });
  return fold;
}

const started: Bare = { type: "started", model: "m", at: "2026-01-01T00:00:00Z" };
const attempt: Bare = { type: "attempt", upstream: "u", model: "m" };

test("words of one kind are one part, in the order in which they came", () => {
  const fold = folded(
    started,
    attempt,
    { type: "reasoning", text: "hm" },
    { type: "reasoning", text: "m" },
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  );
  expect(fold.parts).toMatchObject([
    { kind: "reasoning", text: "hmm", fromMs: 200, toMs: 400 },
    { kind: "text", text: "ab" },
  ]);
  expect([fold.status, fold.firstTokenMs]).toEqual(["running", 200]);
});

test("what an attempt that was given up has said is not shown", () => {
  const fold = folded(
    started,
    attempt,
    { type: "text", text: "lost" },
    {
      type: "attempt",
      upstream: "v",
      model: "m",
      reason: "fallback",
      because: "503",
    },
  );
  expect([fold.parts, fold.by, fold.because]).toEqual([[], "v/m", "503"]);
});

test("going on from a cut keeps what was there", () => {
  const again: Bare = {
    type: "attempt",
    upstream: "u",
    model: "m",
    reason: "continue",
    stands: "everything",
  };
  const fold = folded(started, attempt, { type: "text", text: "a" }, again, { type: "text", text: "b" });
  expect(fold.parts).toMatchObject([{ text: "ab" }]);
});

function withCall(...more: Bare[]): Call {
  const fold = folded(
    started,
    attempt,
    { type: "tool_call", index: 0, id: "c", name: "look" },
    { type: "tool_args", index: 0, text: '{"a"' },
    { type: "tool_args", index: 0, text: ":1}" },
    { type: "tool_call_end", index: 0 },
    ...more,
  );
  return fold.parts.find((part) => part.kind === "call")!;
}

const approval: Bare = {
  type: "approval",
  call_id: "c",
  name: "look",
  arguments: '{"a":1}',
  arguments_digest: "d",
};

test.each<[string, Bare[], Partial<Call>]>([
  ["asked", [], { state: "asked", arguments: '{"a":1}', whole: true }],
  ["waiting", [approval], { state: "waiting", asked: { digest: "d" } }],
  ["approved", [approval, { type: "approved", call_id: "c", decision: "yes" }], { state: "asked" }],
  ["running", [{ type: "tool_run", call_id: "c" }], { state: "running", fromMs: 600 }],
  [
    "done",
    [
      { type: "tool_run", call_id: "c" },
      { type: "tool_result", call_id: "c", text: "r" },
    ],
    { state: "done", result: "r", fromMs: 600, toMs: 700 },
  ],
  ["dropped", [{ type: "notice", code: "tool_call_dropped", text: "gone" }], { state: "dropped" }],
  [
    "unknown",
    [
      { type: "tool_run", call_id: "c" },
      { type: "ended", outcome: { type: "interrupted", reason: "crash" } },
    ],
    { state: "unknown" },
  ],
])("a call is %s", (_, events, expected) => {
  expect(withCall(...events)).toMatchObject(expected);
});

test("an ending is the run's status", () => {
  const fold = folded(started, attempt, { type: "ended", outcome: { type: "stopped", reason: "user" } });
  expect([fold.status, fold.outcome]).toEqual(["stopped", { type: "stopped", reason: "user" }]);
});

function message(id: string, role: "user" | "assistant", runId: string | null, content = id): Item {
  return {
    kind: "message",
    id,
    created_at: "",
    run_id: runId,
    parent_id: null,
    role,
    content,
    parts: [],
    status: "complete",
    siblings: [],
    ...(role === "assistant" ? { reasoning: "", tool_calls: [] } : {}),
  };
}

function notice(id: string, runId: string): Item {
  return { kind: "notice", id, created_at: "", run_id: runId, code: "stopped", text: id };
}

test("all messages and notices of one run are one answer", () => {
  const rows = rowsOf([
    message("u", "user", "r1"),
    message("a", "assistant", "r1"),
    message("b", "assistant", "r1"),
    notice("n", "r1"),
    message("v", "user", "r2"),
    notice("m", "r2"),
  ]);
  expect(rows.map((row) => [row.kind, row.id])).toEqual([
    ["said", "u"],
    ["answer", "r1"],
    ["said", "v"],
    ["answer", "r2"],
  ]);
  expect(rows[1]).toMatchObject({ messages: [{ id: "a" }, { id: "b" }], notices: [{ id: "n" }] });
  expect(rows[3]).toMatchObject({ messages: [], notices: [{ id: "m" }] });
});

test("what is stored is shown as it was live", () => {
  const items = [message("a", "assistant", "r1"), message("b", "assistant", "r1")];
  expect(partsOf(items as never)).toMatchObject([
    { kind: "text", text: "a", turn: 0 },
    { kind: "text", text: "b", turn: 1 },
  ]);
});

test("whether tools were run is told by their states, not by their calls", () => {
  const call: Bare[] = [
    started,
    attempt,
    { type: "tool_call", index: 0, id: "c", name: "write" },
    { type: "tool_call_end", index: 0 },
  ];
  expect(ranTools(folded(...call).parts)).toBe(false);
  expect(ranTools(folded(...call, { type: "tool_run", call_id: "c" }).parts)).toBe(true);
});
