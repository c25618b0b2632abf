/** An answer: what was thought, said and called, how it ended, and what can be done with it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { isActive, partsOf, ranTools, type Shown, type Words } from "../fold";
import { go, paths } from "../router";
import type { LiveRun } from "../runs";
import type { OpenSession } from "../session";
import { fail, models, say } from "../state";
import { duration } from "../when";
import type { Item, MessageItem } from "../wire";
import { Branches } from "./Branches";
import { Ending, isEnding } from "./Ending";
import { Figures } from "./Figures";
import { Icon } from "./Icon";
import { chunks, copyText, Markdown } from "./Markdown";
import { Menu } from "./Overlay";
import { ToolCard } from "./ToolCard";
import { TruthButton } from "./TruthButton";

interface Props {
  session: OpenSession;
  runId: string;
  messages: MessageItem[];
  notices: Item[];
  /** While it goes on, and until it is stored. */
  run: LiveRun | null;
  /** What it answers. */
  askedId: string | null;
  last: boolean;
}

export function Answer({ session, runId, messages, notices, run, askedId, last }: Props) {
  void run?.version.value;
  const fold = run?.fold;
  const live = fold !== undefined && isActive(fold.status);
  const parts: Shown[] = fold ? fold.parts : partsOf(messages);
  const outcome = fold ? fold.outcome : (messages.at(-1)?.outcome ?? null);
  const first = messages[0];
  const model = first?.model ?? fold?.model ?? "";
  const by = first?.answered_by ?? fold?.by ?? null;
  return (
    <article
      class="answer"
      aria-label={`Answer of ${model || "the model"}`}
      data-run={runId}
      data-message={first?.id}
    >
      <header class="who">
        <span class="avatar" aria-hidden="true" />
        <span class="model">{model}</span>
        {by && !sameModel(by, model) && <span class="by">answered by {by}</span>}
        {first?.continues && <span class="by">continued</span>}
        {live && <TruthButton runId={runId} />}
      </header>
      <div class="parts">
        {parts.map((part, n) => (
          <PartView key={n} part={part} runId={runId} live={live} growing={live && n === parts.length - 1} />
        ))}
        {!fold &&
          notices.map((item) =>
            item.kind === "notice" && !isEnding(item) ? (
              <Remark key={item.id} code={item.code} text={item.text} />
            ) : null,
          )}
        {live && <Waiting run={run!} stopping={session.stopping.value} />}
      </div>
      {!live && (
        <Ending
          session={session}
          runId={runId}
          outcome={outcome}
          notices={notices}
          askedId={askedId}
          first={first}
          ranTools={ranTools(parts)}
          last={last}
        />
      )}
      {!live && <Actions session={session} runId={runId} messages={messages} parts={parts} />}
      {/* Nothing was said: why is all there is to know. */}
      {!live && !first && notices.length > 0 && (
        <footer class="actions">
          <TruthButton runId={runId} />
        </footer>
      )}
    </article>
  );
}

/** `openai/gpt-5` answers for `gpt-5`, and `demo` for `demo/story`. */
export function sameModel(by: string, model: string): boolean {
  return by === model || by.endsWith(`/${model}`) || model.startsWith(`${by}/`);
}

export function textOf(parts: Shown[]): string {
  return parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n");
}

export function PartView({
  part,
  runId,
  live,
  growing,
}: {
  part: Shown;
  runId: string;
  live: boolean;
  growing: boolean;
}) {
  switch (part.kind) {
    case "text":
      return <Markdown text={part.text} live={growing} />;
    case "reasoning":
      return <Thought part={part} growing={growing} runId={runId} />;
    case "call":
      return <ToolCard call={part} runId={runId} live={live} />;
    case "remark":
      return <Remark code={part.code} text={part.text} />;
  }
}

/** What was not done is a warning; the rest is good to know. */
function Remark({ code, text }: { code: string; text: string }) {
  const loud = code === "tool_call_dropped";
  return (
    <p class={loud ? "remark" : "remark calm"}>
      {loud && <Icon name="warn" size={15} />}
      {text}
    </p>
  );
}

function Thought({ part, growing, runId }: { part: Words; growing: boolean; runId: string }) {
  const ref = useRef<HTMLDetailsElement>(null);
  const [found, setFound] = useState<number | null>(null);
  const ms = part.fromMs !== undefined && part.toMs !== undefined ? part.toMs - part.fromMs : found;
  useEffect(() => {
    if (ms !== null) return;
    // Only for what is looked at: it takes the whole log.
    const seen = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return;
      seen.disconnect();
      void thoughtMs(runId, part.turn).then(setFound);
    });
    seen.observe(ref.current!);
    return () => seen.disconnect();
  }, [ms === null]);
  const time = ms === null ? "" : ` for ${duration(ms)}`;
  return (
    <details ref={ref} class={growing ? "thought growing" : "thought"}>
      <summary>
        <Icon name="thought" size={15} />
        <span>{growing ? `Thinking${ms !== null && ms >= 1000 ? time : ""}…` : `Thought${time}`}</span>
        <Icon name="down" size={14} />
      </summary>
      <div class="thought-text">{chunks(part.text)}</div>
    </details>
  );
}

/** The log still knows how long it took, as long as it is kept. */
async function thoughtMs(runId: string, turn: number): Promise<number | null> {
  const { readLog } = await import("../log");
  const log = await readLog(runId).catch(() => null);
  const parts = log?.fold.parts.filter((part) => part.kind === "reasoning" && part.turn === turn) ?? [];
  const thought = parts[0];
  return thought?.kind === "reasoning" ? (thought.toMs ?? 0) - (thought.fromMs ?? 0) : null;
}

/** Something to see while nothing comes. */
export function Waiting({ run, stopping }: { run: LiveRun; stopping: boolean }) {
  const { fold } = run;
  const last = fold.parts.at(-1);
  const quiet = !last || last.kind === "remark";
  const said = stopping
    ? "Stopping…"
    : fold.status === "queued"
      ? "Waiting for its turn…"
      : fold.status === "waiting"
        ? "Waiting for your answer."
        : fold.because
          ? `Trying again: ${fold.because}`
          : "Waiting for the first word…";
  if (!quiet && !stopping)
    return fold.status === "running" ? <span class="caret" aria-hidden="true" /> : null;
  return (
    <p class="waiting">
      <span class="ripple" aria-hidden="true" />
      {said}
    </p>
  );
}

interface ActionsProps {
  session: OpenSession;
  runId: string;
  messages: MessageItem[];
  parts: Shown[];
}

function Actions({ session, runId, messages, parts }: ActionsProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const again = ranTools(parts) ? ", tools run again" : "";
  const first = messages[0];
  const last = messages.at(-1);
  if (!first || !last) return null;
  const fork = async () => {
    try {
      const made = await api.fork(session.id, last.id);
      go(paths.session(made.id));
      say("A new conversation, up to here.");
    } catch (error) {
      fail(error);
    }
  };
  return (
    <footer class="actions">
      <Branches session={session} message={first} />
      <button
        type="button"
        class="icon-button"
        aria-label={copied ? "Copied" : "Copy answer"}
        title="Copy answer"
        onClick={() => void copyText(textOf(parts)).then(() => setCopied(true))}
      >
        <Icon name={copied ? "check" : "copy"} size={16} />
      </button>
      <Menu
        label="Answer again"
        side="left"
        choices={[
          {
            label: `Again with the same model${again}`,
            icon: "retry",
            act: () => void session.retry(first.id),
          },
          ...models.value
            .filter((model) => model.id !== first.model)
            .slice(0, 8)
            .map((model) => ({
              label: `With ${model.id}${again}`,
              act: () => void session.retry(first.id, model.id),
            })),
        ]}
      >
        <Icon name="retry" size={16} />
      </Menu>
      <button
        type="button"
        class="icon-button"
        aria-label="Branch into a new conversation"
        title="Branch into a new conversation"
        onClick={() => void fork()}
      >
        <Icon name="branch" size={16} />
      </button>
      <TruthButton runId={runId} />
      <Figures session={session} runId={runId} messages={messages} />
    </footer>
  );
}
