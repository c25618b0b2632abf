import { expect, test } from "vitest";
import { EventHub, type Listener, type Surroundings } from "../src/events";

/** A server that says what a test tells it to, and time that passes when a test says so. */
class World implements Surroundings, Listener {
  asked: string[] = [];
  states: string[] = [];
  seen: string[] = [];
  gone: string[] = [];
  hints: string[] = [];
  opens = 0;
  slots = 1;
  failing = 0;
  /** So many times nobody answers, for ever. */
  hanging = 0;
  clock = 0;
  sleeps: { ms: number; wake(): void }[] = [];
  private streams: ReadableStreamDefaultController<Uint8Array>[] = [];

  open(runs: string, signal: AbortSignal): Promise<Response> {
    this.asked.push(runs);
    if (this.failing > 0) {
      this.failing--;
      return Promise.reject(new TypeError("no network"));
    }
    if (this.hanging > 0) {
      this.hanging--;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => {
        this.streams.push(stream);
        signal.addEventListener("abort", () => stream.error(new DOMException("aborted", "AbortError")));
      },
    });
    return Promise.resolve(new Response(body));
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve());
      this.sleeps.push({ ms, wake: resolve });
    });
  }

  random = () => 1;
  now = () => this.clock;
  slot = async () => {
    if (this.slots === 0) return null;
    this.slots--;
    return () => void this.slots++;
  };
  onEvent = (event: { run_id: string; seq: number }) => void this.seen.push(`${event.run_id}:${event.seq}`);
  onGone = (runId: string) => void this.gone.push(runId);
  onChanged = (changed: { kind: string; id: string }) =>
    void this.hints.push(`${changed.kind} ${changed.id}`);
  onState = (state: string) => void this.states.push(state);
  onOpen = () => void this.opens++;

  send(name: string, said: object): void {
    const text = `event: ${name}\ndata: ${JSON.stringify(said)}\n\n`;
    this.streams.at(-1)!.enqueue(new TextEncoder().encode(text));
  }

  text(runId: string, seq: number): void {
    this.send("run.text", { run_id: runId, seq, t: 0, type: "text", text: "x" });
  }

  cut(): void {
    this.streams.at(-1)!.close();
  }

  async settled(): Promise<void> {
    for (let n = 0; n < 30; n++) await Promise.resolve();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }

  async wake(): Promise<void> {
    this.sleeps.pop()!.wake();
    await this.settled();
  }
}

async function begun(...runs: string[]): Promise<[World, EventHub]> {
  const world = new World();
  const hub = new EventHub(world, world);
  for (const run of runs) hub.follow(run);
  hub.start();
  await world.settled();
  return [world, hub];
}

test("all runs are on one connection, and one more reopens it with the cursors", async () => {
  const [world, hub] = await begun("a", "b");
  world.text("a", 0);
  world.text("a", 1);
  await world.settled();
  hub.follow("c");
  await world.settled();
  expect(world.asked).toEqual(["a:-1,b:-1", "a:1,b:-1,c:-1"]);
  expect(world.states).toEqual(["connecting", "open"]);
  // Each time it is told: hints that came while there was no connection are lost, also before the first.
  expect(world.opens).toBe(2);
});

test("cut off, it says so and comes back with its cursors: nothing is missed, nothing comes twice", async () => {
  const [world] = await begun("a");
  world.text("a", 0);
  await world.settled();
  world.failing = 2;
  world.cut();
  await world.settled();
  expect(world.states.at(-1)).toBe("reconnecting");
  await world.wake();
  await world.wake();
  expect(world.sleeps.map((sleep) => sleep.ms)).toEqual([1000]);
  await world.wake();
  world.text("a", 0);
  world.text("a", 1);
  await world.settled();
  expect(world.asked).toEqual(["a:-1", "a:0", "a:0", "a:0"]);
  expect(world.seen).toEqual(["a:0", "a:1"]);
  expect([world.states.at(-1), world.opens]).toEqual(["open", 2]);
});

test("a gap is asked for again", async () => {
  const [world] = await begun("a");
  world.text("a", 0);
  world.text("a", 2);
  await world.settled();
  expect(world.asked).toEqual(["a:-1", "a:0"]);
  expect(world.seen).toEqual(["a:0"]);
});

test("a run that has ended is followed no more", async () => {
  const [world, hub] = await begun("a");
  world.send("run.completed", { run_id: "a", seq: 0, t: 0, type: "ended", outcome: { type: "completed" } });
  await world.settled();
  expect(world.seen).toEqual(["a:0"]);
  hub.nudge();
  await world.settled();
  expect(world.asked).toEqual(["a:-1", ""]);
});

test("hidden, it lets the connection go; shown, it comes back where it was", async () => {
  const [world, hub] = await begun("a");
  world.text("a", 0);
  await world.settled();
  hub.setAwake(false);
  await world.settled();
  expect([world.states.at(-1), world.asked.length]).toEqual(["asleep", 1]);
  hub.setAwake(true);
  await world.settled();
  expect(world.asked).toEqual(["a:-1", "a:0"]);
  expect(world.opens).toBe(2);
});

test("a connection on which nothing comes is dead", async () => {
  const [world, hub] = await begun("a");
  world.clock = 30_000;
  hub.tick();
  await world.settled();
  expect(world.asked).toHaveLength(1);
  world.clock = 50_000;
  hub.tick();
  await world.settled();
  expect(world.asked).toHaveLength(2);
});

test("one that is never answered is asked for again, also where there was one before", async () => {
  const [world, hub] = await begun("a");
  world.text("a", 0);
  await world.settled();
  world.hanging = 2;
  hub.follow("b");
  await world.settled();
  for (world.clock of [5000, 11_000, 22_000]) {
    hub.tick();
    await world.settled();
  }
  expect(world.asked).toEqual(["a:-1", "a:0,b:-1", "a:0,b:-1", "a:0,b:-1"]);
  expect(world.states).toEqual(["connecting", "open", "reconnecting", "open"]);
});

test("without a slot it listens for a moment, and lets others", async () => {
  const world = new World();
  world.slots = 0;
  const hub = new EventHub(world, world);
  hub.follow("a");
  hub.start();
  await world.settled();
  world.text("a", 0);
  await world.settled();
  await world.wake();
  expect(world.seen).toEqual(["a:0"]);
  expect(world.states).toEqual(["connecting", "open"]);
  expect(world.asked).toHaveLength(1);
  await world.wake();
  expect(world.asked).toEqual(["a:-1", "a:0"]);
});

test("hints and runs that are gone are passed on", async () => {
  const [world, hub] = await begun("a");
  world.send("changed", { kind: "session", id: "s" });
  world.send("gone", { run_id: "a", code: "log_gone" });
  await world.settled();
  expect([world.hints, world.gone, hub.cursors.size]).toEqual([["session s"], ["a"], 0]);
});

test("stopped for good, it asks for nothing more", async () => {
  const [world, hub] = await begun("a");
  hub.stop();
  await world.settled();
  expect([world.states.at(-1), world.asked.length]).toEqual(["idle", 1]);
});
