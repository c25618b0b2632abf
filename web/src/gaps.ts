/** Silences: where nothing came for longer than usual. Pure. */

import type { Attempt, Word } from "./timeline";

export interface Gap {
  fromMs: number;
  toMs: number;
  attempt: number;
}

/** A silence worth telling lasts this long at the least, and this many times as long as pauses usually do. */
const GAP_MS = 600;
const GAP_TIMES = 6;
/** More of them would hide the picture behind it. */
const MOST_GAPS = 40;

/** Silences between words, and between the last word and the attempt's end. */
export function gapsOf(attempts: Attempt[], words: Word[]): Gap[] {
  const gaps: Gap[] = [];
  attempts.forEach((attempt, n) => {
    if (attempt.firstMs === null) return;
    const own = words.slice(attempt.fromWord, attempt.toWord);
    const least = Math.max(GAP_MS, GAP_TIMES * usualPauseMs(own));
    let before = attempt.firstMs;
    for (const t of [...own.map((word) => word.t), attempt.toMs]) {
      if (t - before >= least) gaps.push({ fromMs: before, toMs: t, attempt: n });
      before = Math.max(before, t);
    }
  });
  gaps.sort((a, b) => b.toMs - b.fromMs - (a.toMs - a.fromMs));
  return gaps.slice(0, MOST_GAPS).sort((a, b) => a.fromMs - b.fromMs);
}

/** The middle of all pauses, without those of words that came together. */
function usualPauseMs(words: Word[]): number {
  const pauses = words.slice(1).flatMap((word, n) => (word.t > words[n]!.t ? [word.t - words[n]!.t] : []));
  pauses.sort((a, b) => a - b);
  return pauses[pauses.length >> 1] ?? 0;
}
