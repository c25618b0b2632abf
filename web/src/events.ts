/**
 * The tab's one event connection: all runs that it follows, and hints of what else has changed.
 *
 * It comes back with its cursors whenever it was cut, so that nothing is missed or repeated. It is closed while the tab
 * is hidden, and where many tabs are open they take turns: a browser has six connections for a server, and requests
 * need some of them.
 */

import { createParser } from "eventsource-parser";
import { backoffMs, Cursors } from "./cursors";
import type { LogEvent } from "./wire";

export type ConnectionState = "idle" | "connecting" | "open" | "reconnecting" | "asleep";

export interface Changed {
  kind: "session" | "run" | "group" | "all";
  id: string;
}

export interface Listener {
  onEvent(event: LogEvent): void;
  /** It can't be followed (any more): what is known of it has to be fetched. */
  onGone(runId: string): void;
  onChanged(changed: Changed): void;
  onState(state: ConnectionState): void;
  /** The connection stands: what changed before that, nobody has told. */
  onOpen(): void;
}

export interface Surroundings {
  open(runs: string, signal: AbortSignal): Promise<Response>;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  random(): number;
  now(): number;
  /** Waits for a connection that the tab may keep; gives back what lets it go. Null: it may not keep one now. */
  slot(signal: AbortSignal): Promise<(() => void) | null>;
}

/** The server says something every 15 s at the least (server.heartbeat_s): twice that is silence. */
const SILENCE_MS = 40_000;
/** It begins to answer at once: what takes so long never arrived, or its answer never will. */
const OPENING_MS = 10_000;
/** Without a slot: so long it listens, and so long others may. */
const TURN_MS = 400;
const PAUSE_MS = 1000;

export class EventHub {
  readonly cursors = new Cursors();
  private state: ConnectionState = "idle";
  private running: AbortController | null = null;
  private current: AbortController | null = null;
  private awake = true;
  private tries = 0;
  private heardAt = 0;
  /** It is asked for, and nothing has come of it yet. */
  private opening = false;
  private reopening = false;

  constructor(
    private readonly listener: Listener,
    private readonly around: Surroundings,
  ) {}

  start(): void {
    if (this.running) return;
    const stop = new AbortController();
    this.running = stop;
    void this.run(stop.signal);
  }

  /** Ends for good, e.g. when nobody is signed in. */
  stop(): void {
    this.running?.abort();
    this.running = null;
    this.current?.abort();
    this.become("idle");
  }

  follow(runId: string, after = -1): void {
    if (this.cursors.has(runId)) return;
    this.cursors.add(runId, after);
    this.reopen();
  }

  /** What it still sends of that run is ignored: no need to open another for that. */
  unfollow(runId: string): void {
    this.cursors.remove(runId);
  }

  /** A hidden tab lets its connection go. */
  setAwake(awake: boolean): void {
    if (awake === this.awake) return;
    this.awake = awake;
    this.tries = 0;
    this.reopen();
  }

  /** The network came or went: don't wait for what is going to fail. */
  nudge(): void {
    this.tries = 0;
    this.reopen();
  }

  /** Called now and then: a connection on which nothing comes is dead, e.g. after sleep. */
  tick(): void {
    const silentMs = this.around.now() - this.heardAt;
    if (this.opening) {
      if (silentMs <= OPENING_MS) return;
      this.become("reconnecting");
      this.nudge();
    } else if (this.state === "open" && silentMs > SILENCE_MS) this.nudge();
  }

  private reopen(): void {
    if (this.reopening) return;
    this.reopening = true;
    // Several runs that are added at once are one reopening.
    queueMicrotask(() => {
      this.reopening = false;
      this.current?.abort();
    });
  }

  private become(state: ConnectionState): void {
    if (state === this.state) return;
    this.state = state;
    this.listener.onState(state);
  }

  private async run(stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted) {
      const current = new AbortController();
      this.current = current;
      if (!this.awake) {
        this.become("asleep");
        await this.around.sleep(Number.POSITIVE_INFINITY, current.signal);
        continue;
      }
      const release = await this.around.slot(current.signal);
      if (current.signal.aborted) {
        release?.();
        continue;
      }
      let cut = true;
      try {
        cut = await this.listen(current, release === null);
      } finally {
        release?.();
      }
      if (stopped.aborted || current.signal.aborted) continue;
      if (cut) {
        this.become("reconnecting");
        await this.around.sleep(backoffMs(this.tries++, this.around.random()), current.signal);
      } else await this.around.sleep(PAUSE_MS, current.signal);
    }
  }

  /** True: it was cut. */
  private async listen(current: AbortController, brief: boolean): Promise<boolean> {
    if (this.state !== "open" && this.state !== "reconnecting") this.become("connecting");
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    this.heardAt = this.around.now();
    this.opening = true;
    try {
      const answer = await this.around.open(this.cursors.toString(), current.signal);
      this.opening = false;
      if (!answer.ok || !answer.body) return true;
      this.tries = 0;
      this.heardAt = this.around.now();
      this.become("open");
      this.listener.onOpen();
      const parser = createParser({
        onEvent: (event) => {
          if (!current.signal.aborted) this.take(event.event ?? "", event.data);
        },
      });
      const decoder = new TextDecoder();
      reader = answer.body.getReader();
      const over = brief ? this.around.sleep(TURN_MS, current.signal).then(() => null) : null;
      for (;;) {
        const next = await (over ? Promise.race([reader.read(), over]) : reader.read());
        if (next === null) return false;
        if (next.done) return true;
        this.heardAt = this.around.now();
        parser.feed(decoder.decode(next.value, { stream: true }));
      }
    } catch {
      return true;
    } finally {
      this.opening = false;
      void reader?.cancel().catch(() => {});
    }
  }

  private take(name: string, data: string): void {
    const said = JSON.parse(data);
    if (name === "changed") this.listener.onChanged(said);
    else if (name === "gone") {
      this.cursors.remove(said.run_id);
      this.listener.onGone(said.run_id);
    } else if (name === "trouble") this.reopen();
    else if (name.startsWith("run.")) {
      const verdict = this.cursors.take(said.run_id, said.seq);
      if (verdict === "gap") this.reopen();
      if (verdict !== "new") return;
      if (said.type === "ended") this.cursors.remove(said.run_id);
      this.listener.onEvent(said);
    }
  }
}

// ------------------------------------------------------------------ in a browser

/** Of the six connections that a browser has for a server, so many may be kept for events, over all tabs. */
const SLOTS = 4;

async function takeSlot(signal: AbortSignal): Promise<(() => void) | null> {
  // Only there on https and localhost; without it tabs don't know of each other.
  if (!navigator.locks) return () => {};
  for (let n = 0; n < SLOTS && !signal.aborted; n++) {
    const release = await new Promise<(() => void) | null>((resolve) => {
      const taken = navigator.locks.request(`headwater-events-${n}`, { ifAvailable: true }, (lock) => {
        if (!lock) {
          resolve(null);
          return undefined;
        }
        return new Promise<void>((letGo) => resolve(() => letGo()));
      });
      // A browser that refuses them is one that has none.
      taken.catch(() => resolve(() => {}));
    });
    if (release) return release;
  }
  return null;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = Number.isFinite(ms) ? setTimeout(resolve, ms) : undefined;
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

export const browser: Surroundings = {
  open: (runs, signal) =>
    fetch(`api/events${runs ? `?runs=${runs}` : ""}`, {
      signal,
      headers: { accept: "text/event-stream" },
      cache: "no-store",
    }),
  sleep,
  random: Math.random,
  now: () => performance.now(),
  slot: takeSlot,
};
