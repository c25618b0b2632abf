/**
 * What the whole page knows: who is signed in, which models and conversations there are, what runs, how the connection is.
 *
 * One conversation's own state is in session.ts. Whatever another tab or device does comes as a hint, and is fetched.
 */

import { batch, computed, signal } from "@preact/signals";
import { ApiError, api, whenUnauthorized } from "./api";
import { remember, remembered } from "./drafts";
import { browser, type ConnectionState, EventHub } from "./events";
import { type LiveRun, LiveRuns } from "./runs";
import type { Me, Model, RunSummary, Session } from "./wire";

/** Undefined: not known yet. Null: a key is needed. */
export const me = signal<Me | null | undefined>(undefined);
export const models = signal<Model[]>([]);
export const sessions = signal<Session[]>([]);
export const moreSessions = signal<string | null>(null);
export const sessionsLoaded = signal(false);
/** Active runs by their session. */
export const active = signal<ReadonlyMap<string, RunSummary>>(new Map());
export const connection = signal<ConnectionState>("idle");
export const toast = signal<{ text: string; kind: "error" | "plain" } | null>(null);
/** For screen readers: whole sentences, now and then. */
export const announcement = signal("");
export const sidebarOpen = signal(false);
/** How many dialogs and menus are open: Esc belongs to them first. */
export const overlays = signal(0);

export const mayApprove = computed(() => me.value?.scopes.includes("approve") ?? false);

export const live = new LiveRuns();

/** Somebody who shows a run, a session or a group, and wants to know when it changed. */
export interface Watcher {
  onEnded?(runId: string): void;
  onGone?(runId: string): void;
  onChanged?(kind: string, id: string): void;
  /** Everything may have changed. */
  onReturn?(): void;
}

const watchers = new Set<Watcher>();

export function watch(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export const hub = new EventHub(
  {
    onEvent(event) {
      live.get(event.run_id)?.take(event);
      if (event.type !== "ended") return;
      for (const watcher of watchers) watcher.onEnded?.(event.run_id);
      refreshSoon();
    },
    onGone(runId) {
      for (const watcher of watchers) watcher.onGone?.(runId);
      refreshSoon();
    },
    onChanged(changed) {
      refreshSoon();
      for (const watcher of watchers) {
        if (changed.kind === "all") watcher.onReturn?.();
        else watcher.onChanged?.(changed.kind, changed.id);
      }
    },
    onState(state) {
      connection.value = state;
    },
    onOpen: fetchAnew,
  },
  browser,
);

function fetchAnew(): void {
  refreshSoon();
  if (!models.value.length) void loadModels();
  for (const watcher of watchers) watcher.onReturn?.();
}

const AGAIN_MS = 1000;
let again: ReturnType<typeof setTimeout> | undefined;

/** Something could not be fetched: it is tried again, as no other hint may ever come of it. */
function missed(): void {
  if (again !== undefined) return;
  again = setTimeout(() => {
    again = undefined;
    // Else it is fetched as the connection comes back.
    if (connection.value === "open") fetchAnew();
  }, AGAIN_MS);
}

/** Follows a run from its beginning: what was and what comes is folded by the same code. */
export function follow(runId: string, model: string, sessionId: string | null): LiveRun {
  const run = live.add(runId, model, sessionId);
  run.shownBy++;
  if (!run.fold.outcome) hub.follow(runId);
  return run;
}

/** Lets it go, unless somebody else still shows it. */
export function release(run: LiveRun): void {
  if (--run.shownBy > 0 || live.get(run.id) !== run) return;
  hub.unfollow(run.id);
  live.remove(run.id);
}

// ---------------------------------------------------------------------- fetching

export async function loadMe(): Promise<void> {
  try {
    me.value = await api.me();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.value = null;
    else if (error instanceof ApiError && error.unreachable) setTimeout(() => void loadMe(), 1500);
    else fail(error);
    return;
  }
  hub.start();
  void loadModels();
  void refresh();
}

export async function loadModels(): Promise<void> {
  try {
    models.value = await api.models();
  } catch (error) {
    failToFetch(error);
  }
}

let refreshing: Promise<void> | null = null;
let refreshAgain = false;
let soon: ReturnType<typeof setTimeout> | undefined;

/** Several hints are one refresh. */
export function refreshSoon(): void {
  clearTimeout(soon);
  soon = setTimeout(() => void refresh(), 120);
}

export async function refresh(): Promise<void> {
  if (refreshing) {
    refreshAgain = true;
    return refreshing;
  }
  refreshing = fetchLists();
  await refreshing;
  refreshing = null;
  if (refreshAgain) {
    refreshAgain = false;
    refreshSoon();
  }
}

async function fetchLists(): Promise<void> {
  const before = renaming;
  await before;
  try {
    const [page, running, waiting] = await Promise.all([
      api.sessions(),
      api.runs({ status: "running" }),
      api.runs({ status: "waiting" }),
    ]);
    // It may be from before a name was changed meanwhile.
    if (renaming !== before) {
      refreshAgain = true;
      return;
    }
    batch(() => {
      // What was paged in before stays behind it.
      const fresh = new Set(page.sessions.map((session) => session.id));
      const oldest = page.sessions.at(-1)?.updated_at ?? "";
      const older = page.next
        ? sessions.value.filter((one) => !fresh.has(one.id) && one.updated_at < oldest)
        : [];
      sessions.value = [...page.sessions, ...older];
      if (!older.length) moreSessions.value = page.next;
      active.value = new Map(
        [...running, ...waiting].flatMap((run) => (run.session_id ? [[run.session_id, run] as const] : [])),
      );
      sessionsLoaded.value = true;
    });
  } catch (error) {
    failToFetch(error);
  }
}

let renaming: Promise<unknown> = Promise.resolve();

/** Shown at once. */
export async function rename(id: string, title: string): Promise<void> {
  sessions.value = sessions.value.map((one) => (one.id === id ? { ...one, title } : one));
  renaming = renaming.then(() => api.changeSession(id, { title })).catch(fail);
  await renaming;
  void refresh();
}

export async function loadMore(): Promise<void> {
  const before = moreSessions.value;
  if (!before) return;
  const page = await api.sessions(before);
  batch(() => {
    const known = new Set(sessions.value.map((one) => one.id));
    sessions.value = [...sessions.value, ...page.sessions.filter((one) => !known.has(one.id))];
    moreSessions.value = page.next;
  });
}

// ------------------------------------------------------------------------ models

/** What a new conversation begins with: the last that was chosen, else the server's, else the first. */
export const chosenModel = signal<string | null>(remembered("model"));

export function chooseModel(id: string): void {
  chosenModel.value = id;
  remember("model", id);
}

export const modelForNew = computed<string | null>(() => {
  const known = models.value.map((model) => model.id);
  for (const wish of [chosenModel.value, me.value?.default_model]) {
    if (wish && known.includes(wish)) return wish;
  }
  return known.find((id) => id === "demo/story") ?? known[0] ?? null;
});

// ------------------------------------------------------------------------ saying

let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, kind: "error" | "plain" = "plain"): void {
  toast.value = { text, kind };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(
    () => {
      toast.value = null;
    },
    kind === "error" ? 8000 : 3500,
  );
}

export function fail(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return;
  say(error instanceof Error ? error.message : String(error), "error");
}

/** Of what is shown: nobody has asked for it, and nobody is told of what mends itself. */
export function failToFetch(error: unknown): void {
  if (error instanceof ApiError && error.unreachable) missed();
  else fail(error);
}

/** Opens a menu or dialog as far as Esc is concerned; call what is given back when it closes. */
export function overlay(): () => void {
  overlays.value++;
  let open = true;
  return () => {
    if (open) overlays.value--;
    open = false;
  };
}

// ---------------------------------------------------------------------- starting

whenUnauthorized(() => {
  if (me.value) {
    hub.stop();
    me.value = null;
  }
});

let reasons = 0;

function wakeOrSleep(): void {
  hub.setAwake(!document.hidden || reasons > 0);
}

/** Keeps the connection of a hidden tab, for what is stopped when nobody follows it. Call what is given back. */
export function stayAwake(): () => void {
  reasons++;
  let kept = true;
  wakeOrSleep();
  return () => {
    if (kept) reasons--;
    kept = false;
    wakeOrSleep();
  };
}

export function start(): void {
  document.addEventListener("visibilitychange", wakeOrSleep);
  wakeOrSleep();
  window.addEventListener("online", () => hub.nudge());
  window.addEventListener("offline", () => hub.nudge());
  // From the back-forward cache the old connection is dead.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) hub.nudge();
  });
  setInterval(() => hub.tick(), 5000);
  void loadMe();
}
