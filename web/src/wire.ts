/** What the native API gives and takes, as far as the page uses it. Types only: docs/api.md has the words. */

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  reasoning_tokens?: number;
  cache_write_tokens?: number;
  source?: "provider" | "estimated" | "unknown";
}

export type OutcomeType = "completed" | "incomplete" | "stopped" | "failed" | "interrupted";
export type Status = "queued" | "running" | "waiting" | OutcomeType;

export interface Outcome {
  type: OutcomeType;
  reason?: string;
  message?: string;
  status?: number | null;
  retryable?: boolean;
}

export type CallState = "asked" | "waiting" | "running" | "done" | "failed" | "dropped" | "unknown";

export interface RunSummary {
  id: string;
  session_id: string | null;
  model: string;
  status: Status;
  outcome: Outcome | null;
  on_disconnect: "cancel" | "continue";
  recorded: boolean;
  continues: string | null;
  answered_by: string | null;
  usage: Usage;
  created_at: string;
  started_at: string | null;
  first_token_at: string | null;
  ended_at: string | null;
}

export interface WireCall {
  id: string;
  name: string;
  arguments: string;
  state: CallState;
  result?: string | null;
  parts?: Part[];
}

export interface RunShape extends RunSummary {
  last_seq: number;
  text: string;
  reasoning: string;
  tool_calls: WireCall[];
  attempts: { upstream: string; model: string; reason: string; status: number | null }[];
  last_token_at: string | null;
  last_event_at: string | null;
}

export interface Parameters {
  model?: string | null;
  system?: string | null;
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  reasoning_effort?: string | null;
  seed?: number | null;
  stop?: string[];
}

export interface Session {
  id: string;
  title: string | null;
  created_at: string;
  updated_at: string;
  parameters: Parameters;
  head_id: string | null;
  read_id: string | null;
  group_id: string | null;
  forked_from: string | null;
  queue_paused: boolean;
}

export interface SessionNow extends Session {
  active_run_id: string | null;
  queued: number;
}

export type Part = { type: "image"; blob?: string; url?: string } | { type: "other"; name: string };

export interface MessageItem {
  kind: "message";
  id: string;
  created_at: string;
  run_id: string | null;
  parent_id: string | null;
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  parts: Part[];
  status: "complete" | "partial";
  siblings: string[];
  reasoning?: string;
  tool_calls?: WireCall[];
  model?: string | null;
  answered_by?: string | null;
  usage?: Usage | null;
  outcome?: Outcome | null;
  continues?: string | null;
}

export interface NoticeItem {
  kind: "notice";
  id: string;
  created_at: string;
  run_id: string | null;
  code: string;
  text: string;
}

export type Item = MessageItem | NoticeItem;

export interface QueueItem {
  run: RunSummary;
  content: string;
  parts: Part[];
}

export interface Queue {
  paused: boolean;
  items: QueueItem[];
}

export interface Hit {
  session_id: string;
  message_id: string;
  title: string | null;
  snippet: string;
  created_at: string;
}

export interface Asked {
  message: MessageItem | null;
  run: RunShape;
}

export interface Stopping {
  run: RunShape;
  caused_by_this_call: boolean;
  upstream_closed: boolean | "unknown";
}

export interface Pane {
  session_id: string;
  model: string | null;
  run: RunShape | null;
}

export interface Group {
  id: string;
  created_at: string;
  picked_id: string | null;
  panes: Pane[];
}

/** One of the list of comparisons. */
export interface GroupSummary {
  id: string;
  created_at: string;
  title: string | null;
  picked_id: string | null;
  panes: { session_id: string; model: string | null }[];
}

export interface Me {
  owner: string;
  scopes: string[];
  models: string[];
  key_id: string | null;
  default_model?: string | null;
}

export interface Model {
  id: string;
  owned_by: string;
  display_name: string;
}

export interface ImageIn {
  type: "image";
  blob: string;
}

export type Multitask = "reject" | "queue" | "interrupt";

/** An entry of a run's log, as `/api/events` writes it. */
export type LogEvent = { seq: number; t: number; run_id: string } & (
  | { type: "started"; model: string; at: string; session_id?: string }
  | {
      type: "attempt";
      upstream: string;
      model: string;
      turn?: number;
      reason?: "first" | "retry" | "fallback" | "continue" | "not_streaming";
      because?: string;
      stands?: "nothing" | "everything";
    }
  | { type: "attempt_end"; status?: number; request_id?: string; failed?: Outcome }
  | { type: "text"; text: string; refusal?: boolean }
  | { type: "reasoning"; text: string }
  | { type: "tool_call"; index: number; id: string; name: string }
  | { type: "tool_args"; index: number; text: string }
  | { type: "tool_call_end"; index: number }
  | { type: "tool_run"; call_id: string }
  | { type: "tool_progress"; call_id: string; text?: string; done?: number; total?: number }
  | {
      type: "tool_result";
      call_id: string;
      text: string;
      images?: string[];
      state?: "done" | "failed" | "unknown";
    }
  | { type: "provider_state" }
  | { type: "usage"; usage: Usage }
  | { type: "notice"; code: string; text: string; tools?: string[] }
  | {
      type: "approval";
      call_id: string;
      name: string;
      arguments: string;
      arguments_digest: string;
      expires_at?: string;
    }
  | { type: "approved"; call_id: string; decision: "yes" | "no"; reason?: string; by?: string }
  | { type: "ended"; outcome: Outcome }
);
