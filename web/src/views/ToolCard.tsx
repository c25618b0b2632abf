/** A tool call from its first argument to its result, and the place where a person says yes or no to it. */

import { useEffect, useState } from "preact/hooks";
import { api, newKey } from "../api";
import type { Call } from "../fold";
import { fail, mayApprove } from "../state";
import { duration } from "../when";
import type { CallState } from "../wire";
import { Icon } from "./Icon";
import { CopyButton } from "./Markdown";

const STATES: Record<CallState, string> = {
  asked: "asked for",
  waiting: "waits for you",
  running: "running",
  done: "done",
  failed: "failed",
  dropped: "not run",
  unknown: "outcome unknown",
};

const WHY: Partial<Record<CallState, string>> = {
  dropped: "The answer broke off, so this call was never run.",
  unknown: "It was started, and nothing says how it went: it may have done its work, or not.",
};

export function ToolCard({ call, runId, live }: { call: Call; runId: string; live: boolean }) {
  const waits = call.state === "waiting" && call.asked !== undefined && live;
  const [open, setOpen] = useState(waits);
  useEffect(() => {
    if (waits) setOpen(true);
  }, [waits]);
  const word = call.state === "asked" && !call.whole && live ? "being written" : STATES[call.state];
  const took =
    call.fromMs !== undefined && call.toMs !== undefined ? duration(call.toMs - call.fromMs) : null;
  return (
    <details
      class={`tool ${call.state}`}
      open={open}
      onToggle={(event) => setOpen((event.target as HTMLDetailsElement).open)}
    >
      <summary>
        <span class="tool-icon">
          <Icon
            name={call.state === "done" ? "check" : call.state === "asked" ? "tool" : iconOf(call.state)}
            size={15}
          />
        </span>
        <span class="tool-name">{call.name}</span>
        <span class="tool-brief">{brief(call.arguments)}</span>
        <span class="tool-state">
          {word}
          {took && ` · ${took}`}
        </span>
        <Icon name="down" size={14} />
      </summary>
      <div class="tool-body">
        <Labelled label="Arguments" text={pretty(call.arguments)} />
        {call.state === "running" && call.progress && (
          <p class="tool-progress">
            {call.progress.text}
            {call.progress.total ? ` (${call.progress.done ?? 0} of ${call.progress.total})` : ""}
          </p>
        )}
        {call.result !== undefined && <Labelled label="Result" text={pretty(call.result)} />}
        {call.images.map((part) =>
          part.type === "image" && (part.blob || part.url?.startsWith("data:image/")) ? (
            <img
              key={part.blob ?? part.url}
              src={part.blob ? api.blobUrl(part.blob) : part.url!}
              alt="From the tool"
            />
          ) : null,
        )}
        {WHY[call.state] && <p class="tool-why">{WHY[call.state]}</p>}
        {call.answer && (
          <p class="tool-why">
            {call.answer.decision === "yes" ? "Approved" : "Denied"}
            {call.answer.by ? ` by ${call.answer.by}` : ""}
            {call.answer.reason ? `: ${call.answer.reason}` : "."}
          </p>
        )}
        {waits && <Approval call={call} runId={runId} />}
      </div>
    </details>
  );
}

function iconOf(state: CallState) {
  return state === "waiting" ? "pause" : state === "running" ? "tool" : "warn";
}

function Labelled({ label, text }: { label: string; text: string }) {
  return (
    <div class="labelled">
      <div class="labelled-head">
        <span>{label}</span>
        <CopyButton text={() => text} label={`Copy ${label.toLowerCase()}`} />
      </div>
      <pre tabIndex={0}>{text || " "}</pre>
    </div>
  );
}

function Approval({ call, runId }: { call: Call; runId: string }) {
  const [busy, setBusy] = useState(false);
  const [remember, setRemember] = useState(false);
  const [reason, setReason] = useState("");
  if (!mayApprove.value)
    return <p class="tool-why">Somebody with the right to approve has to answer this.</p>;
  const answer = async (decision: "yes" | "no") => {
    setBusy(true);
    try {
      await api.approve(
        runId,
        call.id,
        {
          decision,
          arguments_digest: call.asked!.digest,
          ...(remember && decision === "yes" ? { remember: "session" as const } : {}),
          ...(reason && decision === "no" ? { reason } : {}),
        },
        newKey(),
      );
    } catch (error) {
      fail(error);
      setBusy(false);
    }
  };
  return (
    <div class="approval" role="group" aria-label={`Approve ${call.name}?`}>
      <p>
        Run <b>{call.name}</b> with these arguments?
      </p>
      <label class="check">
        <input
          type="checkbox"
          checked={remember}
          onChange={(event) => setRemember(event.currentTarget.checked)}
        />
        Don't ask again for this tool in this conversation
      </label>
      <input
        class="field"
        placeholder="If not: why? (optional, the model reads it)"
        aria-label="Reason for denying"
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <div class="row">
        <button type="button" class="button primary" disabled={busy} onClick={() => answer("yes")}>
          Approve
        </button>
        <button type="button" class="button" disabled={busy} onClick={() => answer("no")}>
          Deny
        </button>
      </div>
    </div>
  );
}

function pretty(text: string): string {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

/** The values alone, as far as they have come: enough to tell calls apart. */
export function brief(json: string): string {
  const values = [...json.matchAll(/:\s*("(?:[^"\\]|\\.)*"?|[\d.eE+-]+|true|false|null)/g)].map(
    (found) => found[1]!,
  );
  const said = values.map((value) => value.replace(/^"|"$/g, "").replace(/\\n/g, " ")).join(", ");
  return said.length > 70 ? `${said.slice(0, 70)}…` : said;
}
