/** The figures that matter, and the story in a sentence. */

import { endingText, toneOf } from "../../endings";
import { longestGapMs } from "../../river";
import { endingTitle, type Timeline } from "../../timeline";
import { msBetween, outputTokens, perSecond, speedText, type Tokens, tokensText } from "../../usage";
import { duration } from "../../when";
import type { Outcome, RunShape } from "../../wire";

interface Fact {
  name: string;
  /** Null: nobody knows. */
  value: string | null;
  note: string;
}

export function Facts({ timeline }: { timeline: Timeline }) {
  const tokens = outputTokens(timeline.usage, timeline.chars);
  const speed = timeline.tools.length ? null : perSecond(tokens, timeline.firstMs, timeline.lastMs);
  const silence = longestGapMs(timeline);
  const facts: Fact[] = [
    { name: "First token", value: told(timeline.firstMs), note: "from the question" },
    {
      name: "Speed",
      value: speed === null ? null : `${tokens.sure === "estimated" ? "~" : ""}${speedText(speed)}/s`,
      note: timeline.tools.length ? "tools ran in between" : "first token to last",
    },
    tokensFact(tokens),
    {
      name: "Longest silence",
      value: silence === null ? "none" : duration(silence),
      note: "after the first token",
    },
    { name: "Attempts", value: String(timeline.attempts.length), note: attemptsNote(timeline) },
    {
      name: timeline.outcome ? "Took" : "So far",
      value: duration(timeline.endMs),
      note: timeline.outcome ? "from start to end" : "it goes on",
    },
  ];
  return (
    <>
      <Story outcome={timeline.outcome} text={storyOf(timeline)} />
      <FactList facts={facts} />
    </>
  );
}

/** Without a log: what the run itself still says. */
export function KnownFacts({ run }: { run: RunShape }) {
  const tokens = outputTokens(run.usage, run.text.length + run.reasoning.length);
  return (
    <>
      <Story outcome={run.outcome} text={run.answered_by ? `${run.answered_by} was asked.` : ""} />
      <FactList
        facts={[
          {
            name: "First token",
            value: told(msBetween(run.started_at, run.first_token_at)),
            note: "from the question",
          },
          tokensFact(tokens),
          { name: "Took", value: told(msBetween(run.started_at, run.ended_at)), note: "from start to end" },
          { name: "Events", value: String(run.last_seq + 1), note: "were in its log" },
        ]}
      />
    </>
  );
}

function told(ms: number | null): string | null {
  return ms === null ? null : duration(ms);
}

function tokensFact(tokens: Tokens): Fact {
  const value = tokens.count === null ? null : tokensText(tokens);
  const notes = { provider: "the provider's count", estimated: "estimated", unknown: "not reported" };
  return { name: "Tokens", value, note: notes[tokens.sure] };
}

function attemptsNote(timeline: Timeline): string {
  const count = (reason: string) => timeline.attempts.filter((one) => one.reason === reason).length;
  const parts = [
    [count("retry"), "retry", "retries"],
    [count("fallback"), "fallback", "fallbacks"],
  ] as const;
  const notes = parts.flatMap(([n, one, many]) => (n ? [`${n} ${n === 1 ? one : many}`] : []));
  return notes.join(", ") || "no retry";
}

function Story({ outcome, text }: { outcome: Outcome | null; text: string }) {
  return (
    <p class="truth-story">
      <span class={`truth-outcome ${outcome ? toneOf(outcome) : "accent"}`}>
        {outcome ? endingTitle(outcome) : "Answering"}
      </span>
      {outcome && outcome.type !== "completed" ? `${endingText(outcome)} ` : ""}
      {text}
    </p>
  );
}

/** Who answered, after what. */
function storyOf(timeline: Timeline): string {
  const last = timeline.attempts.at(-1);
  if (!last) return "No model was asked.";
  const failed = timeline.attempts.filter((attempt) => attempt.failed && attempt.givenUp).length;
  const who = `${last.upstream} · ${last.model}`;
  const after = failed ? ` after ${failed === 1 ? "an attempt" : `${failed} attempts`} that failed` : "";
  const whole = timeline.outcome?.type === "completed";
  const begun = whole ? "answered" : timeline.outcome ? "was answering" : "is answering";
  const said = timeline.lastMs === null ? "was asked" : begun;
  return `${who} ${said}${after}.`;
}

function FactList({ facts }: { facts: Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(({ name, value, note }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class={value === null ? "unknown" : undefined}>{value ?? "unknown"}</dd>
          <dd class="note">{note}</dd>
        </div>
      ))}
    </dl>
  );
}
