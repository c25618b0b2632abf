/** What was going on at one moment, and the last words that had come by then. */

import { phaseAt, type Timeline, wordsBy } from "../../timeline";
import { clock } from "./Moments";

/** A rate is counted over so long. */
const WINDOW_MS = 500;
const TAIL_CHARS = 140;

interface Told {
  time: string;
  what: string;
  tail: string;
  /** What came last. */
  word: string;
  spoken: string;
}

export function readingOf(timeline: Timeline, at: number): Told {
  const count = wordsBy(timeline.words, at);
  const { phase, attempt } = phaseAt(timeline, at);
  const rate = ((count - wordsBy(timeline.words, at - WINDOW_MS)) * 1000) / WINDOW_MS;
  const whats = {
    waiting: attempt ? `waiting for ${attempt.upstream}` : "not asked yet",
    silent: "silence",
    coming: `about ${Math.round(rate)} tokens/s`,
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

export function Reading({ timeline, at }: { timeline: Timeline; at: number }) {
  const { time, what, tail, word } = readingOf(timeline, at);
  const count = wordsBy(timeline.words, at);
  return (
    <p class="reading" aria-hidden="true">
      <b>{time}</b>
      <span class="reading-what">{what}</span>
      <span class="reading-count">
        {count.toLocaleString("en")} of {timeline.words.length.toLocaleString("en")}
      </span>
      <span class="reading-words">
        <span>
          {tail}
          <mark>{word}</mark>
        </span>
      </span>
    </p>
  );
}
