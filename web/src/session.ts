/** The conversation that is open: what is stored of it, what runs, what waits, and all that can be done with it. */

import { batch, computed, type Signal, signal } from "@preact/signals";
import { ApiError, api, newKey, type Saying } from "./api";
import { isActive, type Row, rowsOf } from "./fold";
import type { LiveRun } from "./runs";
import {
  announcement,
  fail,
  failToFetch,
  follow,
  live,
  refreshSoon,
  release,
  sessions,
  watch,
} from "./state";
import { endingIn, isAmong, lastSaidId, storedIds } from "./stored";
import type { Asked, Item, MessageItem, Multitask, Parameters, Part, Queue, SessionNow } from "./wire";

/** Said, and not yet among what is stored. */
export interface Pending {
  content: string;
  parts: Part[];
  /** What was said last before it: it is stored once it is among what comes after that. */
  afterId: string | null;
  /** By the server: what is fetched from then on has it. */
  taken: boolean;
}

export class OpenSession {
  readonly info: Signal<SessionNow | null> = signal(null);
  readonly items: Signal<Item[]> = signal([]);
  readonly queue: Signal<Queue | null> = signal(null);
  /** Until it is among `items`, however that came to be known: never both. */
  readonly pending = computed<Pending | null>(() => {
    const sent = this.sent.value;
    return sent && !isAmong(this.items.value, sent) ? sent : null;
  });
  /** The run that goes on, or that has just ended and is not in `items` yet. */
  readonly run: Signal<LiveRun | null> = signal(null);
  readonly stopping = computed<boolean>(() => this.isBusy && this.stoppedId.value === this.activeId);
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
  /** All whose end is known here, on whatever branch. */
  private readonly over = new Set<string>();
  private readonly sent: Signal<Pending | null> = signal(null);
  /** What was asked to stop. */
  private readonly stoppedId: Signal<string | null> = signal(null);
  private readonly unwatch: () => void;
  /** Grows with what begins and ends here: what was asked for before that does not know of it. */
  private era = 0;
  /** What is asked for here, and not answered yet. */
  private asking = 0;
  /** It can't be followed any more. */
  private lostId: string | null = null;
  private saying: Promise<unknown> = Promise.resolve();
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
        if (this.run.value?.id === runId) this.lose(runId);
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
    if (run) release(run);
  }

  liveRun(runId: string): LiveRun | null {
    return this.run.value?.id === runId ? this.run.value : (this.ended.get(runId) ?? null);
  }

  /** Of those that have ended here, the newest. */
  get endedLast(): LiveRun | null {
    return [...this.ended.values()].at(-1) ?? null;
  }

  get isBusy(): boolean {
    return this.busy.value;
  }

  private get activeId(): string | null {
    return this.run.value?.id ?? this.info.value?.active_run_id ?? null;
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
    const { era } = this;
    try {
      const info = await api.session(this.id);
      // Before what was said: what begins meanwhile is then in both, and never in neither.
      const queue = info.queued || info.queue_paused ? await api.queue(this.id) : null;
      const items = await api.messages(this.id);
      // It may be from before what was changed, what began or what ended meanwhile.
      if (changing !== this.changing || era !== this.era) this.again = true;
      else if (!this.closed) this.show(info, items, queue);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.missing.value = true;
      else failToFetch(error);
      this.loaded.value = true;
    }
  }

  private show(info: SessionNow, items: Item[], queue: Queue | null): void {
    const waiting = queue?.items.filter(({ run }) => !items.some((item) => item.run_id === run.id)) ?? [];
    for (const id of storedIds(items)) if (id !== info.active_run_id) this.over.add(id);
    batch(() => {
      this.info.value = info;
      this.items.value = items;
      this.queue.value = queue && (waiting.length || queue.paused) ? { ...queue, items: waiting } : null;
      if (this.sent.value?.taken) this.sent.value = null;
      this.settle(info, items);
      this.loaded.value = true;
    });
    this.markRead();
  }

  /** What runs is followed; what has ended and is stored is let go. The server's word counts. */
  private settle(info: SessionNow, items: Item[]): void {
    const run = this.run.value;
    const lost = run?.id === this.lostId;
    if (run && (lost || run.id !== info.active_run_id)) {
      if (lost || storedIds(items).has(run.id) || run.fold.outcome || !isActive(run.fold.status)) {
        this.run.value = null;
        if (run.fold.outcome) this.ended.set(run.id, run);
        else announcement.value = endingSaid(endingIn(items, run.id));
        this.lostId = null;
        release(run);
      }
    }
    if (info.active_run_id && this.run.value?.id !== info.active_run_id) {
      if (this.run.value) release(this.run.value);
      this.attend(info.active_run_id, info.parameters.model ?? "");
    }
  }

  /** Shows what runs. */
  attend(runId: string, model: string): void {
    this.era++;
    this.run.value = follow(runId, model, this.id);
    if (this.asking) this.asked.value++;
  }

  private onEnded(run: LiveRun): void {
    this.era++;
    this.over.add(run.id);
    announcement.value = endingSaid(run.fold.outcome?.type ?? "");
    void this.load();
  }

  /** What has come of it stays until what is stored of it is here. */
  private lose(runId: string): void {
    this.era++;
    this.lostId = runId;
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
    return this.over.has(runId);
  }

  // ---------------------------------------------------------------------- saying

  send(said: Saying): Promise<boolean> {
    return this.inTurn(() => this.sendNow(said));
  }

  /** One after the other: what is asked next is asked of what came of the one before. */
  private inTurn(ask: () => Promise<boolean>): Promise<boolean> {
    const asked = this.saying.then(ask);
    this.saying = asked;
    return asked;
  }

  private async sendNow(said: Saying): Promise<boolean> {
    if (!this.loaded.value || this.sent.value) await this.load();
    // What has begun since it was written is waited for.
    const multitask = said.multitask === "reject" && this.isBusy ? "queue" : said.multitask;
    if (multitask !== "queue") {
      const afterId = lastSaidId(this.items.peek());
      this.sent.value = { content: said.content, parts: said.parts ?? [], afterId, taken: false };
    }
    return this.begin(() => api.say(this.id, { ...said, ...(multitask ? { multitask } : {}) }, newKey()));
  }

  edit(message: MessageItem, content: string): Promise<boolean> {
    const parts = message.parts.flatMap((part) =>
      part.type === "image" && part.blob ? [{ type: "image" as const, blob: part.blob }] : [],
    );
    return this.ask(
      () => api.edit(this.id, message.id, { content, parts }, newKey()),
      () => this.cut(message.id),
    );
  }

  /** Answered again, beside what is there. */
  retry(messageId: string, model?: string, multitask: Multitask = "reject"): Promise<boolean> {
    const again = { ...(model ? { model } : {}), multitask, on_disconnect: this.onDisconnect };
    return this.ask(
      () => api.regenerate(this.id, messageId, again, newKey()),
      () => this.cut(messageId, this.isSaid(messageId) ? 1 : 0),
    );
  }

  goOn(runId: string): Promise<boolean> {
    // In this session, also if it is a fork, and the run was another's.
    const again = { session_id: this.id, on_disconnect: this.onDisconnect };
    return this.ask(() => api.goOn(runId, again, newKey()));
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

  private ask(ask: () => Promise<Asked>, makeRoom?: () => void): Promise<boolean> {
    return this.inTurn(() => this.begin(ask, makeRoom));
  }

  /** Over as soon as the server has taken it; what it made of it is fetched. */
  private async begin(ask: () => Promise<Asked>, makeRoom: () => void = () => {}): Promise<boolean> {
    this.asking++;
    try {
      // What was chosen just before holds for what is said now.
      await this.changing;
      const asked = await ask();
      if (!this.closed) batch(() => this.onTaken(asked, makeRoom));
    } catch (error) {
      fail(error);
      this.sent.value = null;
      return false;
    } finally {
      void this.load().then(() => this.asking--);
      refreshSoon();
    }
    return true;
  }

  private onTaken({ message, run }: Asked, makeRoom: () => void): void {
    this.era++;
    const shown = this.run.peek();
    // What is still shown of another stays until that is stored: then all of this takes its place at once.
    if (run.status === "queued" || this.isOver(run.id) || (shown && shown.id !== run.id)) {
      const sent = this.pending.peek();
      this.sent.value = sent && { ...sent, taken: true };
      return;
    }
    makeRoom();
    const items = this.items.peek();
    if (message && !items.some((item) => item.id === message.id)) this.items.value = [...items, message];
    this.sent.value = null;
    if (!shown) this.attend(run.id, run.model);
  }

  async stop(): Promise<void> {
    const runId = this.activeId;
    if (!runId || this.stoppedId.value === runId) return;
    this.stoppedId.value = runId;
    try {
      const answer = await api.stop(runId);
      if (answer.run.outcome) await this.load();
    } catch (error) {
      this.stoppedId.value = null;
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

  /** Shown at once as it will be: what is fetched meanwhile is from before. */
  async changeQueue(shown: Queue | null, ask: () => Promise<Queue | undefined>): Promise<void> {
    this.queue.value = shown;
    const changing = this.changing.then(ask).catch(fail);
    this.changing = changing;
    const queue = await changing;
    if (queue && this.changing === changing) this.queue.value = queue.items.length ? queue : null;
    await this.load();
  }

  get title(): string {
    const listed = sessions.value.find((one) => one.id === this.id);
    return this.info.value?.title ?? listed?.title ?? (this.loaded.value ? "New conversation" : "…");
  }
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
