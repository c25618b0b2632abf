/** Requests to the native API. Paths are relative, so that the page works under any `server.base_path`. */

import type {
  Asked,
  Group,
  GroupSummary,
  Hit,
  ImageIn,
  Item,
  Me,
  Model,
  Multitask,
  Parameters,
  Queue,
  RunShape,
  RunSummary,
  Session,
  SessionNow,
  Status,
  Stopping,
} from "./wire";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly facts: Record<string, unknown> = {},
  ) {
    super(message);
  }

  /** Nobody answered: the same may be sent again (with its key). */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 503;
  }
}

/** Told of every 401, so that the page can ask for a key. */
let onUnauthorized: () => void = () => {};

export function whenUnauthorized(told: () => void): void {
  onUnauthorized = told;
}

interface Ask {
  method?: string;
  json?: unknown;
  body?: Blob;
  /** Makes it happen once, however often it is sent. */
  key?: string;
  signal?: AbortSignal;
}

export async function ask<T>(
  path: string,
  { method = "GET", json, body, key, signal }: Ask = {},
): Promise<T> {
  const headers: Record<string, string> = {};
  if (json !== undefined) headers["content-type"] = "application/json";
  if (body) headers["content-type"] = body.type;
  if (key) headers["idempotency-key"] = key;
  // Past the browser's cache: there, tabs that ask for the same wait for each other.
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (json !== undefined) init.body = JSON.stringify(json);
  if (body) init.body = body;
  if (signal) init.signal = signal;
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The server can't be reached.");
  }
  if (!answer.ok) throw await refusal(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export async function refusal(answer: Response): Promise<ApiError> {
  let error: { code?: string; message?: string } & Record<string, unknown> = {};
  try {
    error = (await answer.json()).error ?? {};
  } catch {
    // No JSON: something between us and the server has answered.
  }
  if (answer.status === 401) onUnauthorized();
  return new ApiError(
    answer.status,
    error.code ?? "unknown",
    error.message ?? `The server answered ${answer.status}.`,
    error,
  );
}

/** Sends it until somebody answers: with its key it happens once. */
export async function askSurely<T>(path: string, what: Ask & { key: string }): Promise<T> {
  for (let n = 0; ; n++) {
    try {
      return await ask<T>(path, what);
    } catch (error) {
      if (!(error instanceof ApiError) || !error.unreachable || n >= 8) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(4000, 300 * 2 ** n)));
    }
  }
}

export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

const at = encodeURIComponent;
const session = (id: string, rest = "") => `api/sessions/${at(id)}${rest}`;
const run = (id: string, rest = "") => `api/runs/${at(id)}${rest}`;

export interface Saying {
  content: string;
  parts?: ImageIn[];
  model?: string;
  multitask?: Multitask;
}

/** How an answer is to be given again, or gone on with. */
export interface Again {
  model?: string;
  multitask?: Multitask;
  on_disconnect?: "cancel" | "continue";
}

export const api = {
  me: () => ask<Me>("api/me"),
  login: (key: string) => ask<Me>("api/login", { method: "POST", json: { key } }),
  logout: () => ask<void>("api/logout", { method: "POST", json: {} }),
  models: async () => (await ask<{ data: Model[] }>("v1/models")).data,

  sessions: (before?: string) =>
    ask<{ sessions: Session[]; next: string | null }>(
      `api/sessions?limit=100${before ? `&before=${at(before)}` : ""}`,
    ),
  session: (id: string) => ask<SessionNow>(session(id)),
  /** The id is ours, so that it can be sent again if the answer was lost. */
  createSession: async (id: string, parameters: Parameters) => {
    try {
      await askSurely<Session>("api/sessions", { method: "POST", json: { id, parameters }, key: id });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "session_exists")) throw error;
    }
  },
  changeSession: (
    id: string,
    change: { title?: string; parameters?: Parameters; head_id?: string; read_id?: string },
  ) => ask<SessionNow>(session(id), { method: "PATCH", json: change }),
  deleteSession: (id: string) => ask<void>(session(id), { method: "DELETE" }),
  messages: async (id: string) => (await ask<{ items: Item[] }>(session(id, "/messages"))).items,
  search: async (q: string, signal?: AbortSignal) =>
    (await ask<{ hits: Hit[] }>(`api/sessions/search?limit=30&q=${at(q)}`, signal ? { signal } : {})).hits,
  exportUrl: (id: string, format: "md" | "json") => session(id, `/export?format=${format}`),

  say: (id: string, said: Saying, key: string) =>
    askSurely<Asked>(session(id, "/messages"), { method: "POST", json: said, key }),
  edit: (id: string, messageId: string, said: Saying, key: string) =>
    askSurely<Asked>(session(id, `/messages/${at(messageId)}`), { method: "PUT", json: said, key }),
  regenerate: (id: string, messageId: string, again: Again, key: string) =>
    askSurely<Asked>(session(id, `/messages/${at(messageId)}/regenerate`), {
      method: "POST",
      json: again,
      key,
    }),
  fork: (id: string, messageId: string) =>
    ask<Session>(session(id, "/fork"), { method: "POST", json: { message_id: messageId } }),

  queue: (id: string) => ask<Queue>(session(id, "/queue")),
  changeQueue: (
    id: string,
    change: {
      order?: string[];
      resume?: boolean;
      edit?: { run_id: string; content: string; parts?: ImageIn[] };
    },
  ) => ask<Queue>(session(id, "/queue"), { method: "PATCH", json: change }),
  unqueue: (id: string, runId: string) =>
    ask<void>(session(id, `/queue?run_id=${at(runId)}`), { method: "DELETE" }),

  runs: async (query: { status?: Status; session_id?: string; limit?: number }) => {
    const pairs = Object.entries({ limit: 200, ...query }).map(
      ([name, value]) => `${name}=${at(String(value))}`,
    );
    return (await ask<{ runs: RunSummary[] }>(`api/runs?${pairs.join("&")}`)).runs;
  },
  run: (id: string) => ask<RunShape>(run(id)),
  stop: (id: string) => ask<Stopping>(run(id, "/stop"), { method: "POST", json: { wait_s: 5 } }),
  goOn: (id: string, again: Again & { session_id: string }, key: string) =>
    askSurely<Asked>(run(id, "/continue"), { method: "POST", json: again, key }),
  approve: (
    id: string,
    callId: string,
    answer: { decision: "yes" | "no"; arguments_digest: string; reason?: string; remember?: "session" },
    key: string,
  ) => askSurely<unknown>(run(id, `/approvals/${at(callId)}`), { method: "POST", json: answer, key }),

  putBlob: (image: Blob) =>
    ask<{ hash: string; media_type: string }>("api/blobs", { method: "POST", body: image }),
  blobUrl: (hash: string) => `api/blobs/${hash}`,

  compare: (models: string[], said: Saying, key: string) =>
    askSurely<Group>("api/groups", { method: "POST", json: { ...said, models }, key }),
  groups: (before?: string) =>
    ask<{ groups: GroupSummary[]; next: string | null }>(
      `api/groups?limit=20${before ? `&before=${at(before)}` : ""}`,
    ),
  deleteGroup: (id: string) => ask<void>(`api/groups/${at(id)}`, { method: "DELETE" }),
  group: (id: string) => ask<Group>(`api/groups/${at(id)}`),
  sayToGroup: (id: string, said: Saying, key: string) =>
    askSurely<Group>(`api/groups/${at(id)}/messages`, { method: "POST", json: said, key }),
  pick: (id: string, sessionId: string) =>
    ask<Group>(`api/groups/${at(id)}/pick`, { method: "POST", json: { session_id: sessionId } }),
};
