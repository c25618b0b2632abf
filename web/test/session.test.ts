/** Whatever order things arrive in, what is shown of a conversation is at no moment untrue. */

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { isActive, partsOf } from "../src/fold";
import { OpenSession } from "../src/session";
import { hub } from "../src/state";
import { World } from "./world";

beforeAll(() => {
  // Time stands still: nothing is asked for but what the conversation itself asks for.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval"] });
  vi.stubGlobal("document", { hidden: false });
  vi.stubGlobal("navigator", {});
  new World("nobody").open();
  hub.start();
});

afterAll(() => {
  hub.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const { port1, port2 } = new MessageChannel();

/** All that waits for nothing has been done. */
function quiet(): Promise<void> {
  return new Promise((resolve) => {
    port1.onmessage = () => resolve();
    port2.postMessage(null);
  });
}

type Dice = (sides: number) => number;

/** The same numbers for the same seed. */
function dice(seed: number): Dice {
  let state = seed * 2654435761;
  return (sides) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) | 0;
    return ((state >>> 8) & 0xffffff) % sides;
  };
}

interface Seen {
  kind: "said" | "answer";
  /** What was said, or which run answers. */
  what: string;
  text: string;
  ended: boolean;
}

/** From top to bottom, as the thread shows it. */
function shown(session: OpenSession): Seen[] {
  const rows = session.rows.value;
  const run = session.run.value;
  const answer = (runId: string, stored: string): Seen => {
    const fold = session.liveRun(runId)?.fold;
    const parts = fold?.parts ?? [];
    const text = fold ? parts.map((part) => (part.kind === "text" ? part.text : "")).join("") : stored;
    return { kind: "answer", what: runId, text, ended: !fold || !isActive(fold.status) };
  };
  const all = rows.flatMap((row): Seen[] => {
    if (row.kind === "notice") return [];
    if (row.kind === "said") return [said(row.message.content)];
    const parts = partsOf(row.messages);
    return [answer(row.runId, parts.map((part) => (part.kind === "text" ? part.text : "")).join(""))];
  });
  if (run && !all.some((one) => one.what === run.id)) all.push(answer(run.id, ""));
  const pending = session.pending.value;
  return pending ? [...all, said(pending.content)] : all;
}

function said(content: string): Seen {
  return { kind: "said", what: content, text: content, ended: true };
}

/** Looks after every step, and remembers. */
class Witness {
  private before: Seen[] = [];
  private stoppedId: string | null = null;
  /** They may go: somebody has asked for others in their place. */
  readonly leaving = new Set<string>();
  /** So much was asked for of which nobody knows yet what comes of it. */
  open = 0;

  constructor(private readonly session: OpenSession) {}

  /** `content`: what is refused comes back into the composer. */
  waitFor(asked: Promise<boolean>, content = ""): void {
    this.open++;
    void asked.then((taken) => {
      this.open--;
      if (!taken) this.leaving.add(content);
    });
  }

  look(): void {
    const now = shown(this.session);
    const names = now.map((one) => one.what);
    expect(names, "nothing is shown twice").toEqual([...new Set(names)]);
    for (const old of this.before) {
      const same = now.find((one) => one.what === old.what);
      if (!same) {
        expect(this.leaving, "nothing vanishes").toContain(old.what);
        continue;
      }
      expect(same.text.startsWith(old.text), "no word is taken back").toBe(true);
      if (old.ended) expect(same, "what has ended stays as it is").toEqual(old);
    }
    const queued = this.session.queue.value?.items.map((item) => item.content) ?? [];
    expect(
      queued.filter((content) => names.includes(content)),
      "none waits that was said",
    ).toEqual([]);
    const runId = this.session.run.value?.id ?? this.session.info.value?.active_run_id ?? null;
    const stopping = this.session.stopping.value;
    if (this.session.isBusy && runId === this.stoppedId) expect(stopping, "until it has stopped").toBe(true);
    if (stopping) this.stoppedId = runId;
    this.before = now;
  }
}

/** Does one of the things that can be done now. */
function act(world: World, session: OpenSession, witness: Witness, roll: Dice, name: string): void {
  const rows = session.rows.value;
  const last = rows.at(-1);
  if (roll(2) === 0) {
    const multitask = session.isBusy ? (["queue", "interrupt"] as const)[roll(2)]! : "reject";
    const content = `said ${name}`;
    witness.waitFor(session.send({ content, multitask }), content);
  } else if (session.isBusy) void session.stop();
  else if (last?.kind === "answer" && !session.run.value && !witness.open && !world.queue.length) {
    const asked = rows.findLast((row) => row.kind === "said");
    const way = roll(3);
    const again = last.messages[0];
    if (way === 0) witness.waitFor(session.goOn(last.runId));
    else if (way === 1 && again) {
      witness.leaving.add(last.runId);
      witness.waitFor(session.retry(again.id));
    } else if (way === 2 && asked?.kind === "said") {
      const after = rows.slice(rows.indexOf(asked));
      for (const row of after) witness.leaving.add(row.kind === "said" ? row.message.content : row.id);
      witness.waitFor(session.edit(asked.message, `said ${name} instead`));
    }
  }
}

async function drain(world: World, witness: Witness): Promise<void> {
  for (let n = 0; n < 2000; n++) {
    // No more words: only what is under way.
    const steps = world.next().slice(0, world.active ? -1 : undefined);
    if (!steps.length) return;
    steps[0]!();
    await quiet();
    witness.look();
  }
  throw new Error("it never came to rest");
}

test.each(Array.from({ length: 60 }, (_, seed) => seed))("in any order, %i", async (seed) => {
  const roll = dice(seed + 1);
  const world = new World(String(seed));
  world.open();
  hub.nudge();
  const session = new OpenSession(world.id);
  const witness = new Witness(session);
  void session.load();
  for (let step = 0; step < 120; step++) {
    const steps = world.next();
    const way = roll(20);
    if (way === 0 && session.loaded.value) act(world, session, witness, roll, `${seed}.${step}`);
    else if (way === 1) world.complete();
    else if (steps.length) steps[roll(steps.length)]!();
    await quiet();
    witness.look();
  }
  await drain(world, witness);
  world.complete();
  await drain(world, witness);
  const stored = world.items.flatMap((item) => {
    if (item.kind === "message" && item.role === "user") return [item.content];
    return item.run_id ? [item.run_id] : [];
  });
  expect(
    shown(session)
      .filter((one) => one.what !== world.active?.id)
      .map((one) => one.what),
  ).toEqual([...new Set(stored)]);
  expect(session.isBusy).toBe(world.active !== null);
  expect(session.pending.value).toBe(null);
  session.close();
});

test("an answer is gone on with in the session that shows it, be it a fork", async () => {
  const world = new World("fork");
  world.open();
  hub.nudge();
  const session = new OpenSession(world.id);
  const witness = new Witness(session);
  void session.load();
  await quiet();
  await drain(world, witness);
  witness.waitFor(session.send({ content: "said" }), "said");
  await quiet();
  await drain(world, witness);
  // A word, and the end.
  world.next().at(-1)!();
  world.complete();
  await drain(world, witness);
  const last = session.rows.value.at(-1);
  const goneOn = session.goOn(last?.kind === "answer" ? last.runId : "");
  witness.waitFor(goneOn);
  await quiet();
  await drain(world, witness);
  expect(await goneOn).toBe(true);
  session.close();
});
