/** The conversation that is open: what is stored of it, what runs, what waits, and all that can be done with it. */

import { batch, computed, type Signal, signal } from "@preact/signals";
import { ApiError, api, newKey, type Saying } from "./api";
import { isActive, type Row, rowsOf } from "./fold";
import type { LiveRun } from "./runs";
import { announcement, fail, failToFetch, follow, forget, live, refreshSoon, sessions, watch } from "./state";
import type { Asked, Item, MessageItem, Multitask, Parameters, Part, Queue, SessionNow } from "./wire";

/** Said, and not yet confirmed by the server. */
export interface Pending {
  content: string;
  parts: Part[];
  /** What was said last before it: once that is another message, it is stored. */
  afterId: string | null;
}

export class OpenSession {
  readonly info: Signal<SessionNow | null> = signal(null);
  readonly items: Signal<Item[]> = signal([]);
  readonly queue: Signal<Queue | null> = signal(null);
  /** Until it is among `items`, however that came to be known: never both. */
  readonly pending = computed<Pending | null>(() => {
    const sent = this.sent.value;
    return sent && sent.afterId === lastSaidId(this.items.value) ? sent : null;
  });
  /** The run that goes on, or that has just ended and is not in `items` yet. */
  readonly run: Signal<LiveRun | null> = signal(null);
  readonly stopping = signal(false);
  readonly missing = signal(false);
  readonly loaded = signal(false);
  /** Grows with what is asked for here: whoever asks wants to see the answer. */
  readonly asked = signal(0);
  readonly rows = computed<Row[]>(() => rowsOf(this.items.value));
  /** On its own: whoever asks is told when that changes, and not of every word. */
  private readonly busy = computed<boolean>(() => {
    const run = this.run.value;
    if (!run) return this.info.value?.active_run_id != null;
    void run.version.value;
    return isActive(run.fold.status);
  });
  /** Those that have ended here: they know more than what is stored, e.g. how long was thought. */
  private readonly ended = new Map<string, LiveRun>();
  private readonly sent: Signal<Pending | null> = signal(null);
  private readonly unwatch: () => void;
  private loading: Promise<void> | null = null;
  private again = false;
  private changing: Promise<unknown> = Promise.resolve();
  private closed = false;

  /** `onDisconnect`: of what is asked here, e.g. "cancel" in a comparison's panes. */
  constructor(
    readonly id: string,
    private readonly onDisconnect: "cancel" | "continue" = "continue",
  ) {
    this.unwatch = watch({
      onEnded: (runId) => {
        if (this.run.value?.id === runId) this.onEnded(this.run.value);
      },
      onGone: (runId) => {
        if (this.run.value?.id === runId) this.drop(runId);
      },
      onChanged: (kind, changed) => {
        if (kind === "session" && changed === this.id) void this.load();
      },
      onReturn: () => void this.load(),
    });
  }

  close(): void {
    this.closed = true;
    this.unwatch();
    const run = this.run.peek();
    if (run) forget(run.id);
  }

  liveRun(runId: string): LiveRun | null {
    return this.run.value?.id === runId ? this.run.value : (this.ended.get(runId) ?? null);
  }

  get isBusy(): boolean {
    return this.busy.value;
  }

  // -------------------------------------------------------------------- fetching

  async load(): Promise<void> {
    if (this.closed) return;
    if (this.loading) {
      this.again = true;
      return this.loading;
    }
    this.loading = this.fetchAll();
    return this.loading;
  }

  /** Until nobody asked anew meanwhile: what was asked for later may not be in what was fetched first. */
  private async fetchAll(): Promise<void> {
    do {
      this.again = false;
      await this.fetch();
    } while (this.again);
    // At once: who asks after this is not to wait for what is over.
    this.loading = null;
  }

  private async fetch(): Promise<void> {
    const { changing } = this;
    await changing;
    try {
      const info = await api.session(this.id);
      const [items, queue] = await Promise.all([
        api.messages(this.id),
        info.queued || info.queue_paused ? api.queue(this.id) : null,
      ]);
      // It may be from before what was changed meanwhile.
      if (changing !== this.changing) this.again = true;
      else if (!this.closed) this.show(info, items, queue);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.missing.value = true;
      else failToFetch(error);
    } finally {
      this.loaded.value = true;
    }
  }

  private show(info: SessionNow, items: Item[], queue: Queue | null): void {
    batch(() => {
      this.info.value = info;
      this.items.value = items;
      this.queue.value = queue && (queue.items.length || queue.paused) ? queue : null;
      this.settle(info, items);
    });
    this.markRead();
  }

  /** What runs is followed; what has ended and is stored is let go. The server's word counts. */
  private settle(info: SessionNow, items: Item[]): void {
    const run = this.run.value;
    if (run && run.id !== info.active_run_id) {
      if (isStored(items, run.id) || run.fold.outcome || !isActive(run.fold.status)) {
        this.run.value = null;
        if (run.fold.outcome) this.ended.set(run.id, run);
        else announcement.value = endingSaid(endingIn(items, run.id));
        forget(run.id);
      }
    }
    if (info.active_run_id && this.run.value?.id !== info.active_run_id) {
      if (this.run.value) forget(this.run.value.id);
      this.run.value = follow(info.active_run_id, info.parameters.model ?? "", this.id);
    }
    if (!info.active_run_id) this.stopping.value = false;
  }

  private onEnded(run: LiveRun): void {
    announcement.value = endingSaid(run.fold.outcome?.type ?? "");
    this.stopping.value = false;
    void this.load();
  }

  private drop(runId: string): void {
    if (this.run.value?.id === runId) this.run.value = null;
    live.remove(runId);
    void this.load();
  }

  private markRead(): void {
    const info = this.info.value;
    if (!info?.head_id || info.head_id === info.read_id || info.active_run_id || document.hidden) return;
    const head = info.head_id;
    void api
      .changeSession(this.id, { read_id: head })
      .then(refreshSoon)
      .catch(() => {});
  }

  /** Its end was seen here: whoever calls it active knows less. */
  isOver(runId: string): boolean {
    return this.ended.has(runId) || isStored(this.items.peek(), runId);
  }

  // ---------------------------------------------------------------------- saying

  async send(said: Saying): Promise<boolean> {
    if (!this.loaded.value) await this.load();
    if (said.multitask !== "queue") this.pend(said.content, said.parts ?? []);
    return this.begin(() => api.say(this.id, said, newKey()));
  }

  private pend(content: string, parts: Part[]): void {
    this.sent.value = { content, parts, afterId: lastSaidId(this.items.peek()) };
  }

  edit(message: MessageItem, content: string): Promise<boolean> {
    const parts = message.parts.flatMap((part) =>
      part.type === "image" && part.blob ? [{ type: "image" as const, blob: part.blob }] : [],
    );
    return this.begin(
      () => api.edit(this.id, message.id, { content, parts }, newKey()),
      () => {
        this.cut(message.id);
        this.pend(content, parts);
      },
    );
  }

  /** Answered again, beside what is there. */
  retry(messageId: string, model?: string, multitask: Multitask = "reject"): Promise<boolean> {
    const again = { ...(model ? { model } : {}), multitask, on_disconnect: this.onDisconnect };
    return this.begin(
      () => api.regenerate(this.id, messageId, again, newKey()),
      () => this.cut(messageId, this.isSaid(messageId) ? 1 : 0),
    );
  }

  goOn(runId: string): Promise<boolean> {
    return this.begin(() => api.goOn(runId, { on_disconnect: this.onDisconnect }, newKey()));
  }

  private isSaid(messageId: string): boolean {
    return this.items
      .peek()
      .some((item) => item.id === messageId && item.kind === "message" && item.role === "user");
  }

  /** What was answered, or is said differently, makes room: the new is never shown beside it. */
  private cut(messageId: string, keep = 0): void {
    const at = this.items.peek().findIndex((item) => item.id === messageId);
    if (at >= 0) this.items.value = this.items.peek().slice(0, at + keep);
  }

  /** Over as soon as the server has taken it; what it made of it is fetched. */
  private async begin(ask: () => Promise<Asked>, onTaken: () => void = () => {}): Promise<boolean> {
    try {
      // What was chosen just before holds for what is said now.
      await this.changing;
      const { run } = await ask();
      if (this.closed) return true;
      batch(() => {
        onTaken();
        if (run.status !== "queued" && !this.isOver(run.id)) {
          this.run.value = follow(run.id, run.model, this.id);
          this.asked.value++;
        }
      });
    } catch (error) {
      fail(error);
      this.sent.value = null;
      void this.load();
      return false;
    } finally {
      refreshSoon();
    }
    const { value: sent } = this.sent;
    void this.load().then(() => {
      if (this.sent.value === sent) this.sent.value = null;
    });
    return true;
  }

  async stop(): Promise<void> {
    const runId = this.run.value?.id ?? this.info.value?.active_run_id;
    if (!runId || this.stopping.value) return;
    this.stopping.value = true;
    try {
      const answer = await api.stop(runId);
      if (answer.run.outcome) {
        this.stopping.value = false;
        await this.load();
      }
    } catch (error) {
      this.stopping.value = false;
      fail(error);
    }
  }

  async showBranch(messageId: string): Promise<void> {
    await this.change({ head_id: messageId });
    await this.load();
  }

  /** Shown at once. What is said after it waits for it. */
  async change(change: { title?: string; parameters?: Parameters; head_id?: string }): Promise<void> {
    const { head_id: _, ...shown } = change;
    if (this.info.value) this.info.value = { ...this.info.value, ...shown };
    const changing = this.changing.then(() => api.changeSession(this.id, change)).catch(fail);
    this.changing = changing;
    const info = await changing;
    if (info && this.changing === changing) this.info.value = info;
    refreshSoon();
  }

  get title(): string {
    const info = this.info.value ?? sessions.value.find((one) => one.id === this.id);
    return info?.title ?? "New conversation";
  }
}

function lastSaidId(items: Item[]): string | null {
  return items.findLast((item) => item.kind === "message" && item.role === "user")?.id ?? null;
}

/** Something of its end: what it said, or how it went. */
function isStored(items: Item[], runId: string): boolean {
  return items.some((item) => item.run_id === runId && (item.kind === "notice" || item.role === "assistant"));
}

/** Of a run whose end was stored before its last event came here. */
function endingIn(items: Item[], runId: string): string {
  const own = items.filter((item) => item.run_id === runId);
  const outcome = own.findLast((item) => item.kind === "message" && item.outcome);
  if (outcome?.kind === "message") return outcome.outcome?.type ?? "";
  return own.findLast((item) => item.kind === "notice")?.code ?? "";
}

function endingSaid(type: string): string {
  const said: Record<string, string> = {
    completed: "The answer is complete.",
    incomplete: "The answer is incomplete.",
    stopped: "Stopped. What had arrived is kept.",
    failed: "The answer broke off. What had arrived is kept.",
    interrupted: "The answer was interrupted. What had arrived is kept.",
  };
  return said[type] ?? "The answer has ended.";
}

/** The one that is on the page. */
export const opened = signal<OpenSession | null>(null);

export function newSessionId(): string {
  return `ses_${newKey().slice(0, 26)}`;
}
