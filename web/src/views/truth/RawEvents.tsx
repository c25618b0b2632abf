/** The log itself, event by event, to read and to copy. Only the rows in sight are made: a log may have 20,000. */

import { useMemo, useRef, useState } from "preact/hooks";
import { clock, grouped } from "../../when";
import type { LogEvent } from "../../wire";
import { Icon } from "../Icon";
import { CopyButton } from "../Markdown";

const ROW_PX = 26;
const SEEN_PX = 312;
/** Made beyond what is in sight. */
const SPARE = 8;
const TOKENS = new Set(["text", "reasoning", "tool_args"]);

interface Props {
  runId: string;
  events: readonly LogEvent[];
  /** They come while it is open. */
  count: number;
  show(t: number): void;
}

export function RawEvents({ runId, events, count, show }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <details class="raw" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="right" size={14} />
        <span>{grouped(count)} events</span>
      </summary>
      {open && <Events runId={runId} events={events} count={count} show={show} />}
    </details>
  );
}

function Events({ runId, events, count, show }: Props) {
  const [words, setWords] = useState(true);
  const [top, setTop] = useState(0);
  const [chosen, setChosen] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(
    () => (words ? events : events.filter((event) => !TOKENS.has(event.type))),
    [events, count, words],
  );
  const from = Math.max(0, Math.floor(top / ROW_PX) - SPARE);
  const to = Math.min(shown.length, Math.ceil((top + SEEN_PX) / ROW_PX) + SPARE);
  const current = shown[Math.min(chosen, shown.length - 1)];
  const choose = (n: number) => {
    const next = Math.max(0, Math.min(shown.length - 1, n));
    setChosen(next);
    const event = shown[next];
    if (event) show(event.t);
    const view = box.current!;
    if (next * ROW_PX < view.scrollTop) view.scrollTop = next * ROW_PX;
    if ((next + 1) * ROW_PX > view.scrollTop + view.clientHeight)
      view.scrollTop = (next + 1) * ROW_PX - view.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.floor(SEEN_PX / ROW_PX);
    const steps: Record<string, number> = {
      ArrowDown: chosen + 1,
      ArrowUp: chosen - 1,
      PageDown: chosen + page,
      PageUp: chosen - page,
      Home: 0,
      End: shown.length - 1,
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    choose(next);
  };
  return (
    <div class="raw-body">
      <div class="raw-bar">
        <label class="check">
          <input
            type="checkbox"
            checked={words}
            onChange={(event) => setWords(event.currentTarget.checked)}
          />
          Tokens, too
        </label>
        <span class="spacer" />
        <a href={`api/runs/${encodeURIComponent(runId)}/events`} target="_blank" rel="noreferrer">
          As the server sends them
        </a>
        <CopyButton text={() => events.map(raw).join("\n")} label="Copy all events" />
      </div>
      <div
        class="raw-list"
        ref={box}
        role="listbox"
        aria-label="Events"
        tabIndex={0}
        aria-activedescendant={current ? `event-${current.seq}` : undefined}
        onScroll={() => setTop(box.current!.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div class="raw-all" role="presentation" style={{ height: `${shown.length * ROW_PX}px` }}>
          {shown.slice(from, to).map((event, n) => (
            <div
              key={event.seq}
              id={`event-${event.seq}`}
              class={event === current ? "raw-row here" : "raw-row"}
              role="option"
              tabIndex={-1}
              aria-selected={event === current}
              aria-setsize={shown.length}
              aria-posinset={from + n + 1}
              style={{ top: `${(from + n) * ROW_PX}px` }}
              onClick={() => choose(from + n)}
            >
              <span class="raw-seq">{event.seq}</span>
              <span class="raw-t">{clock(event.t)}</span>
              <span class="raw-type">{event.type}</span>
              <span class="raw-rest">{rest(event)}</span>
            </div>
          ))}
        </div>
      </div>
      {current && (
        <div class="labelled">
          <div class="labelled-head">
            <span>Event {current.seq}</span>
            <CopyButton text={() => raw(current)} label={`Copy event ${current.seq}`} />
          </div>
          <pre tabIndex={0}>{JSON.stringify(JSON.parse(raw(current)), null, 2)}</pre>
        </div>
      )}
    </div>
  );
}

/** As it stands in the log: there, only the first says whose they are. */
function raw({ run_id, ...event }: LogEvent): string {
  return JSON.stringify(event.type === "started" ? { ...event, run_id } : event);
}

function rest(event: LogEvent): string {
  if (TOKENS.has(event.type) && "text" in event) return JSON.stringify(event.text);
  const { seq: _, t: __, type: ___, ...other } = JSON.parse(raw(event)) as Record<string, unknown>;
  const text = JSON.stringify(other);
  return text === "{}" ? "" : text.slice(0, 300);
}
