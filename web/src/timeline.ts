/**
 * A run's log told as what happened when: attempts, words, silences, tools, moments.
 *
 * Pure, and one pass over the log: 20,000 events take a few milliseconds. Times are milliseconds since the run began.
 */

import { endingText, type Tone, toneOf } from "./endings";
import { type Gap, gapsOf } from "./gaps";
import { sumUsage } from "./usage";
import { duration } from "./when";
import type { CallState, LogEvent, Outcome, Usage } from "./wire";

export type WordKind = "text" | "reasoning" | "arguments";

export interface Attempt {
  turn: number;
  upstream: string;
  model: string;
  reason: "first" | "retry" | "fallback" | "continue" | "not_streaming";
  because: string | null;
  fromMs: number;
  /** Its end, or as far as is known. */
  toMs: number;
  firstMs: number | null;
  lastMs: number | null;
  status: number | null;
  requestId: string | null;
  failed: Outcome | null;
  /** What it had said does not stand: another began the turn anew. */
  givenUp: boolean;
  /** Of `words`, its own. */
  fromWord: number;
  toWord: number;
}

/** One piece as it came; usually a token. */
export interface Word {
  t: number;
  kind: WordKind;
  text: string;
}

export interface ToolSpan {
  id: string;
  name: string;
  askedMs: number;
  /** Null: it never ran. */
  runMs: number | null;
  toMs: number;
  state: CallState;
  waited: { fromMs: number; toMs: number; decision: "yes" | "no" | null } | null;
}

export type MomentKind =
  | "started"
  | "attempt"
  | "first"
  | "gap"
  | "broken"
  | "tool"
  | "asked"
  | "notice"
  | "ended";

export interface Moment {
  t: number;
  kind: MomentKind;
  title: string;
  detail: string;
  tone: Tone | "accent";
  seq: number;
}

export interface Timeline {
  endMs: number;
  attempts: Attempt[];
  words: Word[];
  tools: ToolSpan[];
  gaps: Gap[];
  moments: Moment[];
  outcome: Outcome | null;
  usage: Usage | null;
  chars: number;
  firstMs: number | null;
  lastMs: number | null;
  startedAt: string | null;
  model: string;
}

/** `nowMs`: of a run that goes on, how long it has been going. */
export function timelineOf(events: readonly LogEvent[], nowMs: number | null = null): Timeline {
  const told = new Telling();
  for (const event of events) told.take(event);
  return told.end(nowMs);
}

class Telling {
  private readonly attempts: Attempt[] = [];
  private readonly words: Word[] = [];
  private readonly tools: ToolSpan[] = [];
  private readonly moments: Moment[] = [];
  /** By turn: a later one of the same turn replaces it. */
  private readonly usages: Usage[] = [];
  private outcome: Outcome | null = null;
  private startedAt: string | null = null;
  private model = "";
  private lastMs = 0;

  take(event: LogEvent): void {
    this.lastMs = Math.max(this.lastMs, event.t);
    switch (event.type) {
      case "started":
        this.startedAt = event.at;
        this.model = event.model;
        this.note(event, "started", "Asked for", event.model, "calm");
        break;
      case "attempt":
        this.onAttempt(event);
        break;
      case "attempt_end":
        this.onAttemptEnd(event);
        break;
      case "text":
      case "reasoning":
        this.say(event.t, event.type, event.text, event.seq);
        break;
      case "tool_args":
        this.say(event.t, "arguments", event.text, event.seq);
        break;
      case "usage":
        this.usages[this.attempts.at(-1)?.turn ?? 0] = event.usage;
        break;
      case "notice":
        this.note(event, "notice", "Notice", event.text, "warn");
        break;
      case "ended":
        this.outcome = event.outcome;
        break;
      case "tool_call_end":
      case "provider_state":
        break;
      default:
        this.onTool(event);
    }
    if (event.type === "ended") this.onEnded(event.t, event.seq, event.outcome);
  }

  end(nowMs: number | null): Timeline {
    const endMs = Math.max(this.lastMs, this.outcome ? 0 : (nowMs ?? 0), 1);
    for (const one of [...this.attempts.slice(-1), ...this.tools]) if (one.toMs < 0) one.toMs = endMs;
    for (const one of this.tools) if (one.waited && one.waited.toMs < 0) one.waited.toMs = endMs;
    const standing = this.attempts.filter((attempt) => !attempt.givenUp);
    const gaps = gapsOf(this.attempts, this.words);
    for (const gap of gaps) this.moments.push(gapMoment(gap));
    this.moments.sort((a, b) => a.t - b.t || a.seq - b.seq);
    return {
      endMs,
      attempts: this.attempts,
      words: this.words,
      tools: this.tools,
      gaps,
      moments: this.moments,
      outcome: this.outcome,
      usage: sumUsage(this.usages),
      chars: charsOf(standing, this.words),
      firstMs: standing.find((attempt) => attempt.firstMs !== null)?.firstMs ?? null,
      lastMs: standing.findLast((attempt) => attempt.lastMs !== null)?.lastMs ?? null,
      startedAt: this.startedAt,
      model: this.model,
    };
  }

  private note(
    at: { t: number; seq: number },
    kind: MomentKind,
    title: string,
    detail: string,
    tone: Moment["tone"],
  ): void {
    this.moments.push({ t: at.t, seq: at.seq, kind, title, detail, tone });
  }

  private onAttempt(event: Of<"attempt">): void {
    const last = this.attempts.at(-1);
    const turn = event.turn ?? 0;
    if (last) {
      if (last.toMs < 0) last.toMs = event.t;
      if (turn === last.turn && event.stands !== "everything") {
        for (const one of this.attempts) if (one.turn === turn) one.givenUp = true;
      }
    }
    const reason = event.reason ?? "first";
    this.attempts.push({
      turn,
      upstream: event.upstream,
      model: event.model,
      reason,
      because: event.because ?? null,
      fromMs: event.t,
      toMs: -1,
      firstMs: null,
      lastMs: null,
      status: null,
      requestId: null,
      failed: null,
      givenUp: false,
      fromWord: this.words.length,
      toWord: this.words.length,
    });
    const titles: Record<Attempt["reason"], string> = {
      first: turn ? `Turn ${turn + 1}` : "First attempt",
      retry: "Tried again",
      fallback: "Fell back",
      continue: "Went on",
      not_streaming: "Asked without streaming",
    };
    const who = `${event.upstream} · ${event.model}`;
    const tone = reason === "retry" || reason === "fallback" ? "warn" : "accent";
    this.note(
      event,
      "attempt",
      titles[reason],
      event.because ? `${who}, because: ${event.because}` : who,
      tone,
    );
  }

  private onAttemptEnd(event: Of<"attempt_end">): void {
    const attempt = this.attempts.at(-1);
    if (!attempt) return;
    attempt.toMs = event.t;
    attempt.status = event.status ?? null;
    attempt.requestId = event.request_id ?? null;
    attempt.failed = event.failed ?? null;
    if (!event.failed) return;
    const status = event.status ? `HTTP ${event.status}. ` : "";
    this.note(event, "broken", "Attempt failed", `${status}${endingText(event.failed)}`, "bad");
  }

  private say(t: number, kind: WordKind, text: string, seq: number): void {
    this.words.push({ t, kind, text });
    this.first(t, seq, kind === "arguments" ? "A tool call" : kind === "text" ? "Text" : "Reasoning", text);
    const attempt = this.attempts.at(-1);
    if (!attempt) return;
    attempt.lastMs = t;
    attempt.toWord = this.words.length;
  }

  private first(t: number, seq: number, what: string, text: string): void {
    const attempt = this.attempts.at(-1);
    if (!attempt || attempt.firstMs !== null) return;
    attempt.firstMs = attempt.lastMs = t;
    const detail = `${what} ${duration(t - attempt.fromMs)} after it was asked for${text.trim() ? `: “${text.trim()}”` : ""}`;
    this.note({ t, seq }, "first", "First token", detail, "accent");
  }

  private onTool(
    event: Of<"tool_call" | "tool_run" | "tool_progress" | "tool_result" | "approval" | "approved">,
  ): void {
    if (event.type === "tool_call") {
      this.first(event.t, event.seq, `The call of ${event.name}`, "");
      this.tools.push({
        id: event.id,
        name: event.name,
        askedMs: event.t,
        runMs: null,
        toMs: -1,
        state: "asked",
        waited: null,
      });
      this.note(event, "tool", `Calls ${event.name}`, "asked for by the model", "calm");
      return;
    }
    const tool = this.tools.findLast((one) => one.id === event.call_id);
    if (!tool) return;
    if (event.type === "tool_run") {
      tool.runMs = event.t;
      tool.state = "running";
      this.note(event, "tool", `${tool.name} runs`, "noted before it was called", "accent");
    } else if (event.type === "tool_result") {
      tool.toMs = event.t;
      tool.state = event.state ?? "done";
      const took = tool.runMs === null ? "" : ` after ${duration(event.t - tool.runMs)}`;
      const tone = tool.state === "done" ? "ok" : tool.state === "failed" ? "bad" : "warn";
      this.note(event, "tool", `${tool.name}: ${tool.state}${took}`, event.text.slice(0, 200), tone);
    } else if (event.type === "approval") {
      tool.state = "waiting";
      tool.waited = { fromMs: event.t, toMs: -1, decision: null };
      this.note(event, "asked", "Asks for leave", `${tool.name} waits for a person`, "warn");
    } else if (event.type === "approved") {
      if (tool.waited) tool.waited = { ...tool.waited, toMs: event.t, decision: event.decision };
      const said = event.decision === "yes" ? "Allowed" : "Refused";
      const by = event.by ? `by ${event.by}` : "";
      this.note(
        event,
        "asked",
        `${said}: ${tool.name}`,
        event.reason ?? by,
        event.decision === "yes" ? "ok" : "warn",
      );
    }
  }

  private onEnded(t: number, seq: number, outcome: Outcome): void {
    const last = this.attempts.at(-1);
    if (last && last.toMs < 0) last.toMs = t;
    for (const tool of this.tools) {
      if (tool.toMs >= 0) continue;
      tool.toMs = t;
      // It had begun, and nobody knows what it did.
      if (tool.state === "running") tool.state = "unknown";
      else tool.state = "dropped";
    }
    const title = endingTitle(outcome);
    const detail =
      outcome.type === "completed" ? "The upstream proved that it was done." : endingText(outcome);
    this.note({ t, seq }, "ended", title, detail, toneOf(outcome));
  }
}

type Of<T extends LogEvent["type"]> = Extract<LogEvent, { type: T }>;

export function endingTitle(outcome: Outcome): string {
  const titles: Record<Outcome["type"], string> = {
    completed: "Completed",
    incomplete: "Incomplete",
    stopped: "Stopped",
    failed: "Failed",
    interrupted: "Interrupted",
  };
  return titles[outcome.type];
}

function gapMoment(gap: Gap): Moment {
  const detail = `nothing came for ${duration(gap.toMs - gap.fromMs)}`;
  return { t: gap.fromMs, seq: -1, kind: "gap", title: "Silence", detail, tone: "warn" };
}

function charsOf(attempts: Attempt[], words: Word[]): number {
  let chars = 0;
  for (const attempt of attempts) {
    for (let n = attempt.fromWord; n < attempt.toWord; n++) chars += words[n]!.text.length;
  }
  return chars;
}
