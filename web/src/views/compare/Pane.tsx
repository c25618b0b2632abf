/** One model's answers in a comparison: stopped, asked again, swapped and gone on with on its own. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { lastOf } from "../../comparison";
import { endingText, isWhole, toneOf } from "../../endings";
import { isActive, partsOf, type Row, ranTools, type Shown } from "../../fold";
import type { LiveRun } from "../../runs";
import type { OpenSession } from "../../session";
import type { Multitask, Outcome, Pane as PaneShape, RunShape } from "../../wire";
import { PartView, sameModel, textOf, Waiting } from "../Answer";
import { Ending, endingOf } from "../Ending";
import { useFollowing } from "../following";
import { Icon } from "../Icon";
import { copyText } from "../Markdown";
import { ModelPicker } from "../ModelPicker";
import { TruthButton } from "../TruthButton";
import { PaneFigures } from "./PaneFigures";

interface Props {
  pane: OpenSession;
  shape: PaneShape | null;
  picked: boolean;
  hidden: boolean;
  expanded: boolean;
  expand(): void;
  pick(): void;
}

export function Pane({ pane, shape, picked, hidden, expanded, expand, pick }: Props) {
  const run = pane.run.value;
  void run?.version.value;
  const busy = pane.isBusy;
  const parameters = pane.info.value?.parameters;
  const model = parameters?.model ?? shape?.model ?? "";
  const rows = pane.rows.value;
  const last = rows.at(-1);
  // The group and the pane are fetched each on its own: what one says of a run holds for that run alone.
  const shapes = useRef(new Map<string, RunShape>()).current;
  // What has ended stays as it is: what was asked for before that may come after it.
  if (shape?.run && !shapes.get(shape.run.id)?.outcome) shapes.set(shape.run.id, shape.run);
  const vainId = run ? null : inVain(pane.endedLast, shape, rows);
  const runId = run?.id ?? vainId ?? (last?.kind === "answer" ? last.runId : unseen(shape, rows));
  const shown = runId === null ? null : pane.liveRun(runId);
  const stored = runId === null ? null : (shapes.get(runId) ?? null);
  const known = run !== null || pane.info.value !== null;
  const outcome = known ? outcomeOf(shown, vainId ? undefined : last, stored) : null;
  const again = async (...how: [model?: string, multitask?: Multitask]) => {
    // What was said or answered just now is the last.
    await pane.load();
    const messageId = lastOf(pane);
    if (messageId) await pane.retry(messageId, ...how);
  };
  const swap = async (other: string) => {
    await pane.change({ parameters: { ...parameters, model: other } });
    await again(other, "interrupt");
  };
  const answer = last?.kind === "answer" && !vainId ? last : null;
  const by = run?.fold.by ?? answer?.messages[0]?.answered_by;
  return (
    <section
      class={`pane ${busy ? "busy" : outcome ? toneOf(outcome) : ""}`}
      aria-label={model}
      hidden={hidden}
    >
      <header class="pane-head">
        <ModelPicker chosen={model} label="Model of this pane" up={false} choose={(id) => void swap(id)} />
        {by && !sameModel(by, model) && <span class="by">answered by {by}</span>}
        <span class="spacer" />
        {busy && (
          <button
            type="button"
            class="icon-button"
            aria-label={`Stop ${model}`}
            title="Stop"
            disabled={pane.stopping.value}
            onClick={() => void pane.stop()}
          >
            <Icon name="stop" size={15} />
          </button>
        )}
        <button
          type="button"
          class="icon-button"
          aria-label={expanded ? `Show all, not only ${model}` : `Expand ${model}`}
          aria-pressed={expanded}
          title={expanded ? "Show all" : "Expand"}
          onClick={expand}
        >
          <Icon name={expanded ? "shrink" : "expand"} size={15} />
        </button>
      </header>
      <Body pane={pane} model={model} rows={rows} run={run} vainId={vainId} outcome={outcome} />
      <footer class="pane-foot">
        <div class="pane-line">
          <OutcomeBadge busy={busy} stopping={pane.stopping.value} known={known} outcome={outcome} />
          <span class="spacer" />
          <button
            type="button"
            class="icon-button"
            aria-label={`Answer again: ${model}`}
            title="Answer again"
            disabled={busy}
            onClick={() => void again()}
          >
            <Icon name="retry" size={15} />
          </button>
          <CopyAnswer text={() => answerText(run, rows)} model={model} />
          {runId && <TruthButton runId={runId} />}
        </div>
        <div class="pane-line">
          <PaneFigures run={shown} shape={stored} messages={answer?.messages ?? []} />
          <button
            type="button"
            class="button small"
            aria-label={`${picked ? "Picked" : "Pick"} ${model}, and go on with it`}
            title="Go on with this one, as a conversation"
            onClick={pick}
          >
            {picked ? "Picked" : "Pick"}
          </button>
        </div>
      </footer>
    </section>
  );
}

/** The group's run, if it is none of those that the pane shows already. */
function unseen(shape: PaneShape | null, rows: Row[]): string | null {
  const id = shape?.run?.id ?? null;
  return rows.some((row) => row.kind === "answer" && row.runId === id) ? null : id;
}

/** The newest run of a pane, if it has ended and left no answer: what is stored last is an earlier one's (C81). */
function inVain(seen: LiveRun | null, shape: PaneShape | null, rows: Row[]): string | null {
  const ended = [
    { id: seen?.id, outcome: seen?.fold.outcome },
    { id: shape?.run?.id, outcome: shape?.run?.outcome },
  ].flatMap(({ id, outcome }) => (id && outcome && !isWhole(outcome) ? [id] : []));
  const answered = rows.flatMap((row) => (row.kind === "answer" ? [row.runId] : []));
  // Ids grow with time.
  const newest = ended.sort().at(-1);
  return newest && answered.length && answered.every((id) => id < newest) ? newest : null;
}

/** As it was seen to end, else as it is stored; while nobody knows, there is none. */
function outcomeOf(shown: LiveRun | null, last: Row | undefined, stored: RunShape | null): Outcome | null {
  if (shown) return shown.fold.outcome;
  if (last?.kind !== "answer") return stored?.outcome ?? null;
  return last.messages.at(-1)?.outcome ?? stored?.outcome ?? endingOf(last.notices);
}

function answerText(run: LiveRun | null, rows: Row[]): string {
  if (run) return textOf(run.fold.parts);
  const last = rows.findLast((row) => row.kind === "answer");
  return last?.kind === "answer" ? textOf(partsOf(last.messages)) : "";
}

interface BodyProps {
  pane: OpenSession;
  model: string;
  rows: Row[];
  run: LiveRun | null;
  vainId: string | null;
  outcome: Outcome | null;
}

const NEAR_PX = 40;

function Body({ pane, model, rows, run, vainId, outcome }: BodyProps) {
  const { box, inner, onScroll, follow } = useFollowing(NEAR_PX);
  useLayoutEffect(() => {
    if (run) follow();
  }, [run?.id]);
  const stored = run !== null && rows.some((row) => row.kind === "answer" && row.runId === run.id);
  const rounds = rows.filter((row) => row.kind === "said").length;
  return (
    <div
      class="pane-body"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`Answer of ${model}`}
      onScroll={onScroll}
    >
      <div class="pane-inner" ref={inner}>
        {rows.map((row, n) => {
          if (row.kind === "said")
            return rounds > 1 ? (
              <p class="pane-said" key={row.id}>
                {row.message.content}
              </p>
            ) : null;
          if (row.kind === "notice") return null;
          const last = n === rows.length - 1 && !vainId && (run === null || run.id === row.runId);
          return <PaneAnswer key={row.id} pane={pane} row={row} run={pane.liveRun(row.runId)} last={last} />;
        })}
        {run && !stored && (
          <PaneAnswer key={run.id} pane={pane} row={{ ...NOTHING, runId: run.id }} run={run} last={false} />
        )}
        {vainId && (
          <PaneAnswer
            key={vainId}
            pane={pane}
            row={{ ...NOTHING, runId: vainId }}
            run={pane.liveRun(vainId)}
            outcome={outcome}
            last
          />
        )}
      </div>
    </div>
  );
}

type AnswerRow = Extract<Row, { kind: "answer" }>;

/** Not stored yet. */
const NOTHING: AnswerRow = { kind: "answer", id: "", runId: "", messages: [], notices: [] };

interface AnswerProps {
  pane: OpenSession;
  row: AnswerRow;
  run: LiveRun | null;
  outcome?: Outcome | null;
  last: boolean;
}

/** One answer of a pane, and how that one ended: also an earlier one says so (C81). */
function PaneAnswer({ pane, row, run, outcome = null, last }: AnswerProps) {
  void run?.version.value;
  const live = run !== null && isActive(run.fold.status);
  const shown: Shown[] = run ? run.fold.parts : partsOf(row.messages);
  const dropped = row.notices.flatMap((item) =>
    !run && item.kind === "notice" && item.code === "tool_call_dropped" ? [item] : [],
  );
  return (
    <article class="pane-answer" data-run={row.runId}>
      {shown.map((part, n) => (
        <PartView
          key={n}
          part={part}
          runId={row.runId}
          live={live}
          growing={live && n === shown.length - 1}
        />
      ))}
      {dropped.map((item) => (
        <p class="remark" key={item.id}>
          {item.text}
        </p>
      ))}
      {live && <Waiting run={run} stopping={pane.stopping.value} />}
      {!live && (
        <Ending
          session={pane}
          runId={row.runId}
          outcome={run ? run.fold.outcome : (row.messages.at(-1)?.outcome ?? outcome)}
          notices={row.notices}
          askedId={lastOf(pane)}
          first={row.messages[0]}
          ranTools={ranTools(shown)}
          last={last}
        />
      )}
    </article>
  );
}

function CopyAnswer({ text, model }: { text(): string; model: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={copied ? "Copied" : `Copy answer of ${model}`}
      title="Copy answer"
      onClick={async () => {
        await copyText(text());
        setCopied(true);
        setTimeout(() => setCopied(false), 1500);
      }}
    >
      <Icon name={copied ? "check" : "copy"} size={15} />
    </button>
  );
}

const BADGES: Record<Outcome["type"], string> = {
  completed: "Completed",
  incomplete: "Incomplete",
  stopped: "Stopped",
  failed: "Failed",
  interrupted: "Interrupted",
};

interface BadgeProps {
  busy: boolean;
  stopping: boolean;
  /** Its words are here: how an answer ended is never shown before what it said. */
  known: boolean;
  outcome: Outcome | null;
}

/** C81: only what is proven complete is called so. */
function OutcomeBadge({ busy, stopping, known, outcome }: BadgeProps) {
  if (busy) {
    return (
      <span class="badge running">
        <span class="ripple" aria-hidden="true" />
        {stopping ? "Stopping…" : "Answering…"}
      </span>
    );
  }
  if (!outcome) return <span class="badge">{known ? "No answer yet" : "Loading…"}</span>;
  const icon = isWhole(outcome) ? "check" : outcome.type === "stopped" ? "stop" : "warn";
  return (
    <span class={`badge ${toneOf(outcome)}`} title={isWhole(outcome) ? undefined : endingText(outcome)}>
      <Icon name={icon} size={13} />
      {BADGES[outcome.type]}
    </span>
  );
}
