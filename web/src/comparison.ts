/** A comparison that is open: its panes, each a session of its own, and what is done with all of them at once. */

import { batch, computed, type Signal, signal } from "@preact/signals";
import { ApiError, api, newKey, type Saying } from "./api";
import { isActive } from "./fold";
import { OpenSession } from "./session";
import { fail, failToFetch, stayAwake, watch } from "./state";
import type { Group } from "./wire";

/** Several panes that end together are one fetch. */
const SOON_MS = 100;

export class Comparison {
  readonly group: Signal<Group | null> = signal(null);
  readonly panes: Signal<OpenSession[]> = signal([]);
  readonly missing = signal(false);
  readonly busy = computed(() => this.panes.value.some((pane) => pane.isBusy));
  /** The first thing that was said: the same in every pane. */
  readonly prompt = computed(() => {
    const said = this.panes.value.flatMap((pane) => pane.rows.value).find((row) => row.kind === "said");
    return said?.kind === "said" ? said.message : null;
  });
  private readonly undo: (() => void)[];
  private soon: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(readonly id: string) {
    const unwatch = watch({
      onEnded: (runId) => {
        if (this.panes.peek().some((pane) => pane.run.peek()?.id === runId)) this.loadSoon();
      },
      onChanged: (kind, changed) => {
        const ours = kind === "session" && this.panes.peek().some((pane) => pane.id === changed);
        if (ours || (kind === "group" && changed === this.id)) this.loadSoon();
      },
      onReturn: () => this.loadSoon(),
    });
    // Its runs are stopped when nobody follows them: while they run, the tab does, also when it is hidden.
    let release: (() => void) | null = null;
    const unsubscribe = this.busy.subscribe((busy) => {
      if (busy) release ??= stayAwake();
      else {
        release?.();
        release = null;
      }
    });
    this.undo = [unwatch, unsubscribe, () => release?.()];
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.soon);
    for (const undo of this.undo) undo();
    for (const pane of this.panes.peek()) pane.close();
  }

  private loadSoon(): void {
    if (this.closed) return;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.load(), SOON_MS);
  }

  async load(): Promise<void> {
    const before = this.group.peek();
    try {
      const group = await api.group(this.id);
      // One that was shown meanwhile knows more: it is asked for again.
      if (this.group.peek() === before) this.show(group);
      else this.loadSoon();
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.missing.value = true;
      else failToFetch(error);
    }
  }

  show(group: Group): void {
    if (this.closed) return;
    const known = new Map(this.panes.peek().map((pane) => [pane.id, pane]));
    const fresh: OpenSession[] = [];
    batch(() => {
      this.group.value = group;
      this.panes.value = group.panes.map(({ session_id: id, run }) => {
        const pane = known.get(id) ?? new OpenSession(id, "cancel");
        if (!known.delete(id)) fresh.push(pane);
        // All in one go: one event connection is opened for them, and not one after the other.
        if (run && isActive(run.status) && !pane.run.peek() && !pane.isOver(run.id)) {
          pane.attend(run.id, run.model);
        }
        return pane;
      });
    });
    for (const gone of known.values()) gone.close();
    for (const pane of fresh) void pane.load();
  }

  /** Says it to all of them. False: it was not taken. */
  async say(said: Saying): Promise<boolean> {
    try {
      // What has just ended is stored first: then each pane is free to show what begins, and to stop it.
      await Promise.all(this.panes.peek().map((pane) => (pane.run.peek() ? pane.load() : undefined)));
      this.show(await api.sayToGroup(this.id, said, newKey()));
      await Promise.all(this.panes.peek().map((pane) => pane.load()));
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }

  async stopAll(): Promise<void> {
    await Promise.all(this.panes.peek().map((pane) => (pane.isBusy ? pane.stop() : undefined)));
  }

  async pick(sessionId: string): Promise<boolean> {
    try {
      this.group.value = await api.pick(this.id, sessionId);
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  }
}

/** What of a pane would be answered again: its last answer, else what was said last. */
export function lastOf(pane: OpenSession): string | null {
  for (const row of pane.rows.value.toReversed()) {
    if (row.kind === "answer" && row.messages[0]) return row.messages[0].id;
    if (row.kind === "said") return row.message.id;
  }
  return null;
}
