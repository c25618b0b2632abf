/** What was going on at one moment of a run, and the last words that had come by then. Pure. */

import type { Attempt, Timeline, Word } from "./timeline";
import { clock, grouped } from "./when";

export type Phase = "waiting" | "silent" | "coming" | "between" | "over";

/** What was going on then. */
export function phaseAt(timeline: Timeline, t: number): { phase: Phase; attempt: Attempt | null } {
  const attempt = timeline.attempts.findLast((one) => one.fromMs <= t) ?? null;
  if (!attempt) return { phase: "waiting", attempt };
  if (t >= timeline.endMs && timeline.outcome) return { phase: "over", attempt };
  if (t > attempt.toMs) return { phase: "between", attempt };
  if (attempt.firstMs === null || t < attempt.firstMs) return { phase: "waiting", attempt };
  const silent = timeline.gaps.some((gap) => gap.fromMs < t && t < gap.toMs);
  return { phase: silent ? "silent" : "coming", attempt };
}

/** How many words had come by then. */
export function wordsBy(words: readonly Word[], t: number): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle]!.t <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A rate is counted over so long. */
const WINDOW_MS = 500;
const TAIL_CHARS = 140;

export interface Reading {
  time: string;
  what: string;
  tail: string;
  /** What came last. */
  word: string;
  spoken: string;
}

export function readingOf(timeline: Timeline, at: number): Reading {
  const count = wordsBy(timeline.words, at);
  const { phase, attempt } = phaseAt(timeline, at);
  const rate = ((count - wordsBy(timeline.words, at - WINDOW_MS)) * 1000) / WINDOW_MS;
  const whats = {
    waiting: attempt ? `waiting for ${attempt.upstream}` : "not asked yet",
    silent: "silence",
    coming: `about ${grouped(Math.round(rate))} tokens/s`,
    between: timeline.tools.some((tool) => tool.runMs !== null && tool.runMs <= at && at < tool.toMs)
      ? "a tool runs"
      : "nothing is asked",
    over: "it has ended",
  };
  const what = whats[phase];
  let tail = "";
  const word = timeline.words[count - 1]?.text ?? "";
  for (let n = count - 2; n >= 0 && tail.length < TAIL_CHARS; n--) tail = timeline.words[n]!.text + tail;
  const time = clock(at);
  const spoken = `${time}, ${what}, ${count} of ${timeline.words.length} tokens`;
  return { time, what, tail: line(tail.slice(-TAIL_CHARS)), word: line(word), spoken };
}

function line(text: string): string {
  return text.replace(/\s+/g, " ");
}
