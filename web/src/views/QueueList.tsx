/** What waits for its turn. It is kept on the server: every tab and device sees the same. */

import { useRef, useState } from "preact/hooks";
import { api } from "../api";
import { imagesOf, moved, reordered, without } from "../queue";
import type { OpenSession } from "../session";
import type { Queue, QueueItem } from "../wire";
import { Icon } from "./Icon";

export function QueueList({ session }: { session: OpenSession }) {
  const queue = session.queue.value;
  if (!queue?.items.length) return null;
  const change = (what: () => Promise<Queue | undefined>, shown: Queue | null = queue) =>
    void session.changeQueue(shown, what);
  const move = (from: number, to: number) => {
    const order = moved(queue, from, to);
    change(() => api.changeQueue(session.id, { order }), reordered(queue, order));
  };
  // What goes on leaves the queue for the conversation: both are fetched together.
  const goOn = async () => {
    await api.changeQueue(session.id, { resume: true });
    return undefined;
  };
  const remove = (runId: string) =>
    change(() => api.unqueue(session.id, runId).then(() => undefined), without(queue, runId));
  return (
    <section class="queue" aria-label="Waiting messages">
      <header class="queue-head">
        <Icon name={queue.paused ? "pause" : "clock"} size={15} />
        <span>
          {queue.paused ? "Paused: the answer before did not complete" : "Next, when the answer is done"}
        </span>
        {queue.paused && (
          <button type="button" class="button small primary" onClick={() => change(goOn)}>
            <Icon name="play" size={13} /> Go on
          </button>
        )}
      </header>
      <ol>
        {queue.items.map((item, n) => (
          <Waiting
            key={item.run.id}
            item={item}
            up={n > 0 ? () => move(n, n - 1) : null}
            down={n < queue.items.length - 1 ? () => move(n, n + 1) : null}
            edit={(content) =>
              change(() =>
                api.changeQueue(session.id, {
                  edit: { run_id: item.run.id, content, parts: imagesOf(item) },
                }),
              )
            }
            remove={() => remove(item.run.id)}
          />
        ))}
      </ol>
    </section>
  );
}

interface WaitingProps {
  item: QueueItem;
  up: (() => void) | null;
  down: (() => void) | null;
  edit(content: string): void;
  remove(): void;
}

function Waiting({ item, up, down, edit, remove }: WaitingProps) {
  const [text, setText] = useState<string | null>(null);
  const editing = useRef(false);
  const end = (keep: boolean) => {
    // Its removal takes the focus from it, which ends it once more.
    if (!editing.current) return;
    editing.current = false;
    if (keep && text?.trim() && text !== item.content) edit(text);
    setText(null);
  };
  return (
    <li>
      {text === null ? (
        <button
          type="button"
          class="queue-text"
          title="Edit"
          onClick={() => {
            editing.current = true;
            setText(item.content);
          }}
        >
          {item.content || "(images)"}
        </button>
      ) : (
        <input
          class="field"
          aria-label="Edit waiting message"
          value={text}
          ref={(input) => input?.focus()}
          onInput={(event) => setText(event.currentTarget.value)}
          onBlur={() => end(true)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing) end(true);
            if (event.key === "Escape") {
              event.stopPropagation();
              end(false);
            }
          }}
        />
      )}
      <button type="button" class="icon-button" aria-label="Earlier" disabled={!up} onClick={() => up?.()}>
        <Icon name="up" size={15} />
      </button>
      <button type="button" class="icon-button" aria-label="Later" disabled={!down} onClick={() => down?.()}>
        <Icon name="down" size={15} />
      </button>
      <button type="button" class="icon-button" aria-label="Remove from the queue" onClick={remove}>
        <Icon name="close" size={15} />
      </button>
    </li>
  );
}
