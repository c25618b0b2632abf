/** What happened, one after the other: to be read, and to be found again in the picture. */

import { useRef } from "preact/hooks";
import type { Timeline } from "../../timeline";
import { clock } from "../../when";

interface Props {
  timeline: Timeline;
  at: number | null;
  setAt(t: number | null): void;
}

export function Moments({ timeline, at, setAt }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const all = [...list.current!.querySelectorAll("button")];
    const next = all[all.indexOf(document.activeElement as HTMLButtonElement) + step];
    next?.focus();
  };
  return (
    <section aria-label="What happened when">
      <ol class="moments" ref={list} onKeyDown={onKeyDown} onPointerLeave={() => setAt(null)}>
        {timeline.moments.map((moment, n) => (
          <li key={n}>
            <button
              type="button"
              class={at === moment.t ? `moment ${moment.tone} here` : `moment ${moment.tone}`}
              onFocus={() => setAt(moment.t)}
              onPointerEnter={() => setAt(moment.t)}
              onClick={() => setAt(moment.t)}
            >
              <span class="moment-t">{clock(moment.t)}</span>
              <span class="moment-dot" aria-hidden="true" />
              <b>{moment.title}</b>
              <span class="moment-detail">{moment.detail}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
