/**
 * The shape of a timeline: lanes, the river of tokens, the axis. Pure geometry, to scale: one pixel is the same time
 * everywhere, and the river is as wide as tokens came fast.
 */

import type { Gap } from "./gaps";
import type { Attempt, Timeline, ToolSpan, Word, WordKind } from "./timeline";

export interface Lane {
  name: string;
  attempts: number[];
}

/** One for each upstream and model, in the order in which they were first asked. */
export function lanesOf(attempts: readonly Attempt[]): Lane[] {
  const lanes = new Map<string, Lane>();
  attempts.forEach((attempt, n) => {
    const name =
      attempt.model === attempt.upstream ? attempt.model : `${attempt.upstream} · ${attempt.model}`;
    const lane = lanes.get(name) ?? { name, attempts: [] };
    lane.attempts.push(n);
    lanes.set(name, lane);
  });
  return [...lanes.values()];
}

/** Tools that ran at the same time lie below each other: each one's row. */
export function rowsOf(tools: readonly ToolSpan[]): number[] {
  const free: number[] = [];
  return tools.map((tool) => {
    let row = free.findIndex((until) => until <= tool.askedMs);
    if (row < 0) row = free.length;
    free[row] = tool.toMs;
    return row;
  });
}

/** A stretch of one kind of words, with how fast they came at evenly spaced places. */
export interface Stream {
  kind: WordKind;
  givenUp: boolean;
  fromMs: number;
  stepMs: number;
  /** Tokens a second. */
  rates: number[];
}

/** Of an attempt, in steps of `stepMs`. A silence parts it. */
export function streamsOf(
  attempt: Attempt,
  words: readonly Word[],
  gaps: readonly Gap[],
  stepMs: number,
): Stream[] {
  const before = new Set(gaps.map((gap) => gap.fromMs));
  const streams: Stream[] = [];
  let n = attempt.fromWord;
  while (n < attempt.toWord) {
    const kind = words[n]!.kind;
    let end = n;
    do end++;
    while (
      end < attempt.toWord &&
      words[end]!.kind === kind &&
      !(before.has(words[end - 1]!.t) && words[end]!.t > words[end - 1]!.t)
    );
    streams.push(streamOf(kind, attempt.givenUp, words, n, end, stepMs));
    n = end;
  }
  return streams;
}

function streamOf(
  kind: WordKind,
  givenUp: boolean,
  words: readonly Word[],
  from: number,
  to: number,
  stepMs: number,
): Stream {
  const fromMs = words[from]!.t;
  const steps = Math.floor((words[to - 1]!.t - fromMs) / stepMs) + 1;
  const counts = new Array<number>(steps).fill(0);
  for (let n = from; n < to; n++) counts[Math.floor((words[n]!.t - fromMs) / stepMs)]!++;
  return { kind, givenUp, fromMs, stepMs, rates: smooth(counts).map((count) => (count * 1000) / stepMs) };
}

/** A little, so that it flows: a step takes part of its neighbours. The sum stays (but for the ends). */
const KERNEL = [0.06, 0.12, 0.2, 0.24, 0.2, 0.12, 0.06];

function smooth(counts: number[]): number[] {
  const reach = KERNEL.length >> 1;
  return counts.map((_, at) => {
    let sum = 0;
    let weight = 0;
    for (let k = -reach; k <= reach; k++) {
      const count = counts[at + k];
      if (count === undefined) continue;
      sum += count * KERNEL[k + reach]!;
      weight += KERNEL[k + reach]!;
    }
    return sum / weight;
  });
}

/** Round its middle, as wide as it is fast: `half(rate)` is half of that. */
export function riverPath(
  stream: Stream,
  x: (ms: number) => number,
  middle: number,
  half: (rate: number) => number,
): string {
  const at = stream.rates.map(
    (rate, n) => [x(stream.fromMs + (n + 0.5) * stream.stepMs), half(rate)] as const,
  );
  const first = x(stream.fromMs);
  const last = x(stream.fromMs + stream.rates.length * stream.stepMs);
  const upper = [[first, at[0]![1] * 0.6] as const, ...at, [last, at.at(-1)![1] * 0.6] as const];
  const edge = (points: (readonly [number, number])[], sign: number) =>
    points.map(([px, py]) => `${round(px)} ${round(middle + sign * py)}`);
  return `M${edge(upper, -1).join("L")}L${edge(upper.toReversed(), 1).join("L")}Z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** From where one was given up to where the next was asked: along a bend if it is another lane. */
export function bendPath(fromX: number, fromY: number, toX: number, toY: number): string {
  const [x1, y1, x2, y2] = [fromX, fromY, toX, toY].map(round) as [number, number, number, number];
  if (y1 === y2) return `M${x1} ${y1}L${x2} ${y2}`;
  const half = round((y1 + y2) / 2);
  // There is no room to go along before it goes down.
  if (x2 - x1 < 48) return `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
  const bend = round(Math.min(60, (x2 - x1) / 2));
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000,
];

/** Round times, not more than about one for each `leastPx`. */
export function ticksOf(endMs: number, widthPx: number, leastPx = 84): number[] {
  const least = (endMs * leastPx) / Math.max(1, widthPx);
  const step = STEPS_MS.find((ms) => ms >= least) ?? Math.ceil(least / 86_400_000) * 86_400_000;
  const ticks = [];
  for (let ms = 0; ms <= endMs; ms += step) ticks.push(ms);
  return ticks;
}

export function tickText(ms: number): string {
  if (ms === 0) return "0";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${ms / 1000} s`;
  if (ms < 3_600_000) {
    const seconds = Math.round((ms % 60_000) / 1000);
    return `${Math.floor(ms / 60_000)}${seconds ? `:${String(seconds).padStart(2, "0")}` : ""} min`;
  }
  return `${Math.round(ms / 360_000) / 10} h`;
}

/** The fastest that tokens came in any step. */
export function fastest(streams: readonly Stream[]): number {
  let most = 0;
  for (const stream of streams) for (const rate of stream.rates) most = Math.max(most, rate);
  return most;
}

/** Of labels in one line, those that have room: the first come first. */
export function withRoom<T extends { x: number; width: number }>(labels: readonly T[], gapPx = 10): T[] {
  const kept: T[] = [];
  for (const label of labels) {
    const free = kept.every(
      (one) => label.x >= one.x + one.width + gapPx || label.x + label.width + gapPx <= one.x,
    );
    if (free) kept.push(label);
  }
  return kept;
}

/** What the longest silence was, if there was one worth telling. */
export function longestGapMs(timeline: Timeline): number | null {
  return timeline.gaps.reduce<number | null>((most, gap) => Math.max(most ?? 0, gap.toMs - gap.fromMs), null);
}
