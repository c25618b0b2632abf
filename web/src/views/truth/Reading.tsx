/** What was going on where the cursor is, under the picture. */

import { readingOf, wordsBy } from "../../reading";
import type { Timeline } from "../../timeline";

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
