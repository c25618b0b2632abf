/** What was going on where the cursor is, under the picture. */

import { readingOf, wordsBy } from "../../reading";
import type { Timeline } from "../../timeline";
import { grouped } from "../../when";

export function Reading({ timeline, at }: { timeline: Timeline; at: number }) {
  const { time, what, tail, word } = readingOf(timeline, at);
  const count = wordsBy(timeline.words, at);
  return (
    <p class="reading" aria-hidden="true">
      <b>{time}</b>
      <span class="reading-what">{what}</span>
      <span class="reading-count">
        {grouped(count)} of {grouped(timeline.words.length)}
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
