/** A run's whole log, read once: for what only the log knows. */

import { createParser } from "eventsource-parser";
import { refusal } from "./api";
import { apply, type Fold, newFold } from "./fold";
import type { LogEvent } from "./wire";

export interface Log {
  events: LogEvent[];
  fold: Fold;
}

const kept = new Map<string, Promise<Log>>();

/** Of a run that has ended: the server closes the stream after its last event. */
export function readLog(runId: string): Promise<Log> {
  let log = kept.get(runId);
  if (!log) {
    log = fetchLog(runId);
    kept.set(runId, log);
    log.catch(() => kept.delete(runId));
  }
  return log;
}

/** So long it is read in one go; then whatever else waits has its turn. */
const TURN_MS = 8;
const PIECE_BYTES = 1 << 14;

async function fetchLog(runId: string): Promise<Log> {
  const answer = await fetch(`api/runs/${encodeURIComponent(runId)}/events`);
  if (!answer.ok || !answer.body) throw await refusal(answer);
  const events: LogEvent[] = [];
  const fold = newFold(runId, "");
  const parser = createParser({
    onEvent(event) {
      if (!event.event?.startsWith("run.")) return;
      const entry = { ...JSON.parse(event.data), run_id: runId } as LogEvent;
      events.push(entry);
      apply(fold, entry);
    },
  });
  for await (const piece of pieces(answer.body)) parser.feed(piece);
  return { events, fold };
}

async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let since = performance.now();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (let at = 0; at < value.length; at += PIECE_BYTES) {
      yield decoder.decode(value.subarray(at, at + PIECE_BYTES), { stream: true });
      if (performance.now() - since < TURN_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      since = performance.now();
    }
  }
}
