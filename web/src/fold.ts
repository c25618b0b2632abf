/**
 * Folds a run's events into what is shown: parts in the order in which they came.
 *
 * Pure but for the fold itself, which is changed in place: a token costs the same however long the answer is. Its parts
 * are replaced, not changed, so that whoever shows one sees by its identity whether it is new. It follows the server's
 * own fold (accumulate.py): what an attempt that was given up has said is not shown.
 */

import { sumUsage } from "./usage";
import type { CallState, Item, LogEvent, MessageItem, Outcome, Part, Status, Usage, WireCall } from "./wire";

export interface Words {
  kind: "text" | "reasoning";
  text: string;
  turn: number;
  /** Milliseconds since the run began; absent where nobody knows any more. */
  fromMs?: number;
  toMs?: number;
}

export interface Call {
  kind: "call";
  id: string;
  name: string;
  arguments: string;
  state: CallState;
  turn: number;
  whole: boolean;
  result?: string;
  images: Part[];
  progress?: { text: string; done?: number; total?: number };
  asked?: { digest: string; expiresAt?: string };
  answer?: { decision: "yes" | "no"; reason?: string; by?: string };
  fromMs?: number;
  toMs?: number;
}

export interface Remark {
  kind: "remark";
  code: string;
  text: string;
  turn: number;
}

export type Shown = Words | Call | Remark;

export interface Fold {
  runId: string;
  model: string;
  status: Status;
  outcome: Outcome | null;
  parts: Shown[];
  /** As what is stored says it: `upstream/model`. */
  by: string | null;
  usage: Usage | null;
  /** By turn. */
  usages: Usage[];
  turn: number;
  firstTokenMs: number | null;
  lastMs: number;
  /** When the run began, for what is counted while it goes on. */
  startedAt: string | null;
  /** Why the last attempt is not the first. */
  because: string | null;
}

export function newFold(runId: string, model: string): Fold {
  return {
    runId,
    model,
    status: "queued",
    outcome: null,
    parts: [],
    by: null,
    usage: null,
    usages: [],
    turn: 0,
    firstTokenMs: null,
    lastMs: 0,
    startedAt: null,
    because: null,
  };
}

export function isActive(status: Status): boolean {
  return status === "queued" || status === "running" || status === "waiting";
}

export function apply(fold: Fold, event: LogEvent): void {
  fold.lastMs = event.t;
  switch (event.type) {
    case "started":
      fold.status = "running";
      fold.model = event.model;
      fold.startedAt = event.at;
      break;
    case "attempt":
      onAttempt(fold, event);
      break;
    case "text":
    case "reasoning":
      grow(fold, event.type, event.text, event.t);
      break;
    case "tool_call":
      fold.firstTokenMs ??= event.t;
      close(fold, event.t);
      fold.parts.push({
        kind: "call",
        id: event.id,
        name: event.name,
        arguments: "",
        state: "asked",
        turn: fold.turn,
        whole: false,
        images: [],
      });
      break;
    case "tool_args":
      change(fold, turnCalls(fold)[event.index], (call) => ({ arguments: call.arguments + event.text }));
      break;
    case "tool_call_end":
      change(fold, turnCalls(fold)[event.index], () => ({ whole: true }));
      break;
    case "usage":
      fold.usages[fold.turn] = event.usage;
      fold.usage = sumUsage(fold.usages);
      break;
    case "notice":
      onNotice(fold, event);
      break;
    case "ended":
      onEnded(fold, event.outcome);
      break;
    case "attempt_end":
    case "provider_state":
      break;
    default:
      onTool(fold, event);
  }
}

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;

function onAttempt(fold: Fold, event: Of<"attempt">): void {
  const turn = event.turn ?? 0;
  if (turn > fold.turn) {
    close(fold, event.t);
    fold.turn = turn;
  } else if (event.stands !== "everything") {
    fold.parts = fold.parts.filter((part) => part.turn !== turn || part.kind === "remark");
    if (turn === 0) fold.firstTokenMs = null;
  }
  fold.by = event.model === event.upstream ? event.model : `${event.upstream}/${event.model}`;
  fold.because =
    event.reason === "retry" || event.reason === "fallback" ? (event.because ?? event.reason) : null;
  fold.status = "running";
}

function grow(fold: Fold, kind: "text" | "reasoning", text: string, t: number): void {
  fold.firstTokenMs ??= t;
  const last = fold.parts.at(-1);
  if (last?.kind === kind && last.turn === fold.turn) {
    fold.parts[fold.parts.length - 1] = { ...last, text: last.text + text, toMs: t };
    return;
  }
  close(fold, t);
  fold.parts.push({ kind, text, turn: fold.turn, fromMs: t, toMs: t });
}

/** Thinking lasts until something else comes. */
function close(fold: Fold, t: number): void {
  const last = fold.parts.at(-1);
  if (last?.kind === "reasoning") fold.parts[fold.parts.length - 1] = { ...last, toMs: t };
}

function change(fold: Fold, call: Call | undefined, how: (call: Call) => Partial<Call>): void {
  if (call) fold.parts[fold.parts.indexOf(call)] = { ...call, ...how(call) };
}

function calls(fold: Fold): Call[] {
  return fold.parts.filter((part) => part.kind === "call");
}

const RAN: ReadonlySet<CallState> = new Set(["running", "done", "failed", "unknown"]);

/** Tools were run for it, or may have been: to answer again runs them again. */
export function ranTools(parts: Shown[]): boolean {
  return parts.some((part) => part.kind === "call" && RAN.has(part.state));
}

function turnCalls(fold: Fold): Call[] {
  return calls(fold).filter((call) => call.turn === fold.turn);
}

function onNotice(fold: Fold, event: Of<"notice">): void {
  fold.parts.push({ kind: "remark", code: event.code, text: event.text, turn: fold.turn });
  if (event.code !== "tool_call_dropped") return;
  for (const call of turnCalls(fold)) {
    if (call.state === "asked" || call.state === "waiting") change(fold, call, () => ({ state: "dropped" }));
  }
}

function onTool(
  fold: Fold,
  event: Of<"tool_run" | "tool_progress" | "tool_result" | "approval" | "approved">,
): void {
  const call = calls(fold).findLast((one) => one.id === event.call_id);
  change(fold, call, () => afterTool(event));
  if (event.type === "tool_run") fold.status = "running";
  if (event.type === "approval") fold.status = "waiting";
  if (event.type === "approved" && !calls(fold).some((one) => one.state === "waiting"))
    fold.status = "running";
}

function afterTool(
  event: Of<"tool_run" | "tool_progress" | "tool_result" | "approval" | "approved">,
): Partial<Call> {
  switch (event.type) {
    case "tool_run":
      return { state: "running", fromMs: event.t };
    case "tool_progress":
      return { progress: { text: event.text ?? "", ...given(event, "done"), ...given(event, "total") } };
    case "tool_result":
      return {
        state: event.state ?? "done",
        result: event.text,
        toMs: event.t,
        images: (event.images ?? []).map((url) => ({ type: "image", url })),
      };
    case "approval": {
      const expiresAt = event.expires_at;
      const asked = { digest: event.arguments_digest, ...(expiresAt === undefined ? {} : { expiresAt }) };
      return { state: "waiting", arguments: event.arguments, asked };
    }
    case "approved":
      return {
        state: "asked",
        answer: { decision: event.decision, ...given(event, "reason"), ...given(event, "by") },
      };
  }
}

/** A field that may be missing, as far as it is there. */
function given<T, K extends keyof T>(from: T, name: K): { [P in K]?: NonNullable<T[P]> } {
  const value = from[name];
  return value === undefined || value === null ? {} : ({ [name]: value } as { [P in K]?: NonNullable<T[P]> });
}

function onEnded(fold: Fold, outcome: Outcome): void {
  fold.outcome = outcome;
  fold.status = outcome.type;
  for (const call of calls(fold)) {
    if (call.state === "running") change(fold, call, () => ({ state: "unknown" }));
  }
}

/** What is stored of a run, in the same form: its messages, one for each turn. */
export function partsOf(messages: MessageItem[]): Shown[] {
  return messages.flatMap((message, turn): Shown[] => [
    ...(message.reasoning ? [{ kind: "reasoning" as const, text: message.reasoning, turn }] : []),
    ...(message.content ? [{ kind: "text" as const, text: message.content, turn }] : []),
    ...(message.tool_calls ?? []).map((call) => storedCall(call, turn)),
  ]);
}

function storedCall(call: WireCall, turn: number): Call {
  return {
    kind: "call",
    id: call.id,
    name: call.name,
    arguments: call.arguments,
    state: call.state,
    turn,
    whole: true,
    images: call.parts ?? [],
    ...(call.result === undefined || call.result === null ? {} : { result: call.result }),
  };
}

/** A row of the conversation: what somebody said, an answer (all messages of one run), or a notice. */
export type Row =
  | { kind: "said"; id: string; message: MessageItem }
  | { kind: "answer"; id: string; runId: string; messages: MessageItem[]; notices: Item[] }
  | { kind: "notice"; id: string; text: string; code: string };

/** Groups what is stored by run. Notices of a run belong to its answer, so that they stand where it ended. */
export function rowsOf(items: Item[]): Row[] {
  const rows: Row[] = [];
  for (const item of items) {
    const last = rows.at(-1);
    if (item.kind === "message" && item.role === "assistant") {
      const runId = item.run_id ?? item.id;
      if (last?.kind === "answer" && last.runId === runId) last.messages.push(item);
      else rows.push({ kind: "answer", id: runId, runId, messages: [item], notices: [] });
    } else if (item.kind === "notice") {
      if (last?.kind === "answer" && last.runId === item.run_id) last.notices.push(item);
      else if (item.run_id) {
        rows.push({ kind: "answer", id: item.run_id, runId: item.run_id, messages: [], notices: [item] });
      } else rows.push({ kind: "notice", id: item.id, text: item.text, code: item.code });
    } else if (item.role === "user" || item.role === "system") {
      rows.push({ kind: "said", id: item.id, message: item });
    }
  }
  return rows;
}
