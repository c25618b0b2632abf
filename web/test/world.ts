/**
 * A server with one conversation, asked as the real one is, whose every answer and event comes when a test says so.
 *
 * What is asked is first heard and answered, then arrives: in between, and in any order with all else, other things happen.
 */

import { vi } from "vitest";
import type { Item, LogEvent, Outcome } from "../src/wire";

interface Asking {
  method: string;
  path: string;
  body: Record<string, unknown>;
  signal: AbortSignal | null;
  answer(said: unknown): void;
}

interface Run {
  id: string;
  /** What it answers; null: it goes on with what was said. */
  content: string | null;
  log: LogEvent[];
  outcome: Outcome | null;
}

/** What one connection is still to be sent. */
interface Flow {
  cursors: Map<string, number>;
  hints: number;
  open: boolean;
  wake: (() => void) | null;
}

const STOPPED: Outcome = { type: "stopped", reason: "user" };

export class World {
  readonly id: string;
  items: Item[] = [];
  queue: Run[] = [];
  paused = false;
  active: Run | null = null;
  private readonly runs = new Map<string, Run>();
  private readonly heard: Asking[] = [];
  private readonly underWay: (() => void)[] = [];
  private flow: Flow | null = null;
  private count = 0;

  constructor(private readonly name: string) {
    this.id = `ses_${name}`;
  }

  /** From now on, this is the server. */
  open(): void {
    vi.stubGlobal("fetch", (path: string, init: RequestInit = {}) => this.ask(path, init));
  }

  private ask(path: string, init: RequestInit): Promise<unknown> {
    return new Promise((answer, refuse) => {
      const { method = "GET", signal = null } = init;
      const body = typeof init.body === "string" ? JSON.parse(init.body) : {};
      const asking = { method, path, body, signal, answer };
      this.heard.push(asking);
      signal?.addEventListener("abort", () => {
        if (this.heard.includes(asking)) this.heard.splice(this.heard.indexOf(asking), 1);
        refuse(signal.reason);
      });
    });
  }

  // ------------------------------------------------------------ what may happen next

  /** Each is one thing that may happen now. */
  next(): (() => void)[] {
    const { active, flow } = this;
    return [
      ...this.heard.map((one, n) => () => {
        this.heard.splice(n, 1);
        const said = this.answerTo(one);
        this.underWay.push(() => one.answer(said));
      }),
      ...this.underWay.map((arrive, n) => () => {
        this.underWay.splice(n, 1);
        arrive();
      }),
      ...(flow?.open && flow.wake && (flow.hints || this.behind(flow)) ? [flow.wake] : []),
      ...(active ? [() => this.say(active)] : []),
    ];
  }

  private answerTo(one: Asking): unknown {
    if (one.path.startsWith("api/events")) return this.stream(one);
    const said = this.made(one);
    if (typeof said === "number") {
      return { ok: false, status: said, json: async () => ({ error: { message: `Refused: ${said}` } }) };
    }
    const kept = JSON.parse(JSON.stringify(said));
    return { ok: true, status: 200, json: async () => kept };
  }

  /** What it does, and says; a number: it refuses. */
  private made({ method, path, body }: Asking): unknown {
    const [, , , what, id, how] = path.split("/");
    if (path === "v1/models") return { data: [{ id: "m" }] };
    if (path.startsWith("api/runs/")) {
      const run = this.runs.get(path.split("/")[2]!)!;
      if (path.endsWith("/stop")) this.end(run, STOPPED);
      if (path.endsWith("/continue")) return this.goneOn(body.session_id);
      return { run: shape(run) };
    }
    if (what === "queue") return this.queueShape();
    if (what !== "messages") return this.info();
    if (method === "GET") return { items: this.items };
    if (method === "PUT") return this.branch(id!, 0, String(body.content));
    if (how === "regenerate") return this.branch(id!, 1, null);
    return this.taken(String(body.content), String(body.multitask ?? "reject"));
  }

  /** Elsewhere there is no copy of it. */
  private goneOn(sessionId: unknown): unknown {
    if (sessionId !== this.id) return 404;
    return this.active ? 409 : this.start(this.newRun(null));
  }

  private info() {
    const { id, active, queue, paused } = this;
    return {
      id,
      title: null,
      parameters: { model: "m" },
      head_id: this.items.at(-1)?.id ?? null,
      read_id: null,
      active_run_id: active?.id ?? null,
      queued: queue.length,
      queue_paused: paused,
    };
  }

  private queueShape() {
    return {
      paused: this.paused,
      items: this.queue.map((run) => ({ run: shape(run), content: run.content, parts: [] })),
    };
  }

  private newRun(content: string | null): Run {
    const run = { id: `run_${this.name}_${this.count++}`, content, log: [], outcome: null };
    this.runs.set(run.id, run);
    return run;
  }

  private taken(content: string, multitask: string): unknown {
    const run = this.newRun(content);
    if (this.active && multitask === "reject") return 409;
    if (this.active && multitask === "queue") {
      this.queue.push(run);
      this.hint();
      return { message: null, run: { ...shape(run), status: "queued" } };
    }
    if (this.active) this.end(this.active, { type: "stopped", reason: "replaced" });
    return this.start(run);
  }

  private branch(messageId: string, keep: number, content: string | null): unknown {
    if (this.active) return 409;
    const at = this.items.findIndex((item) => item.id === messageId);
    if (at < 0) return 404;
    const item = this.items[at]!;
    const said = item.kind === "message" && item.role === "user";
    this.items = this.items.slice(0, at + (said ? keep : 0));
    return this.start(this.newRun(content));
  }

  private start(run: Run): unknown {
    this.active = run;
    const message = run.content === null ? null : this.add(run, "user", run.content);
    this.log(run, { type: "started", model: "m", at: "" });
    this.hint();
    return { message, run: shape(run) };
  }

  private add(run: Run, role: "user" | "assistant", content: string): Item {
    const outcome = role === "assistant" ? run.outcome : null;
    const message = {
      kind: "message",
      id: `msg_${this.name}_${this.count++}`,
      run_id: run.id,
      role,
      content,
    };
    const item = { ...message, outcome, parts: [], siblings: [] } as unknown as Item;
    this.items = [...this.items, item];
    return item;
  }

  private log(run: Run, event: object): void {
    run.log.push({ ...event, seq: run.log.length, t: 0, run_id: run.id } as LogEvent);
  }

  private hint(): void {
    if (this.flow) this.flow.hints++;
  }

  private say(run: Run): void {
    this.log(run, { type: "text", text: `${run.id}.${run.log.length} ` });
  }

  end(run: Run, outcome: Outcome): void {
    if (run.outcome) return;
    run.outcome = outcome;
    this.queue = this.queue.filter((one) => one !== run);
    if (run !== this.active) return;
    const text = textOf(run);
    if (text) this.add(run, "assistant", text);
    if (outcome.type !== "completed") {
      const notice = {
        kind: "notice",
        id: `not_${this.count++}`,
        run_id: run.id,
        code: outcome.type,
        text: "",
      };
      this.items = [...this.items, notice as unknown as Item];
    }
    this.active = null;
    this.log(run, { type: "ended", outcome });
    this.hint();
    if (outcome.type !== "completed" && outcome.reason !== "replaced") this.paused = this.queue.length > 0;
    const next = this.queue[0];
    if (next && !this.paused && outcome.reason !== "replaced") {
      this.queue = this.queue.slice(1);
      this.start(next);
    }
  }

  complete(): void {
    if (this.active && textOf(this.active)) this.end(this.active, { type: "completed" });
  }

  // -------------------------------------------------------------------- the events

  private stream({ path, signal }: Asking): unknown {
    const pairs = (path.split("runs=")[1] ?? "").split(",").filter(Boolean);
    const cursors = new Map(pairs.map((pair) => [pair.split(":")[0]!, Number(pair.split(":")[1])]));
    const flow: Flow = { cursors, hints: 0, open: true, wake: null };
    this.flow = flow;
    let cut: (reason: unknown) => void = () => {};
    signal?.addEventListener("abort", () => {
      flow.open = false;
      cut(signal.reason);
    });
    const read = () =>
      new Promise<{ done: boolean; value?: Uint8Array }>((resolve, reject) => {
        cut = reject;
        flow.wake = () => {
          flow.wake = null;
          resolve({ done: false, value: new TextEncoder().encode(this.frame(flow)) });
        };
      });
    return { ok: true, status: 200, body: { getReader: () => ({ read, cancel: async () => {} }) } };
  }

  private behind(flow: Flow): Run | undefined {
    const found = [...flow.cursors].find(([id, at]) => at < (this.runs.get(id)?.log.length ?? 0) - 1);
    return found && this.runs.get(found[0]);
  }

  /** One at a time: a hint before what it hints at. */
  private frame(flow: Flow): string {
    if (flow.hints) {
      flow.hints = 0;
      return `event: changed\ndata: ${JSON.stringify({ kind: "session", id: this.id })}\n\n`;
    }
    const run = this.behind(flow)!;
    const seq = flow.cursors.get(run.id)! + 1;
    flow.cursors.set(run.id, seq);
    return `event: run.any\ndata: ${JSON.stringify(run.log[seq])}\n\n`;
  }
}

export function textOf(run: { log: LogEvent[] }): string {
  return run.log.flatMap((event) => (event.type === "text" ? [event.text] : [])).join("");
}

function shape(run: Run) {
  return { id: run.id, model: "m", status: run.outcome?.type ?? "running", outcome: run.outcome };
}
