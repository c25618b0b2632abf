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

async function fetchLog(runId: string): Promise<Log> {
  const answer = await fetch(`api/runs/${encodeURIComponent(runId)}/events`);
  if (!answer.ok) throw await refusal(answer);
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
  parser.feed(await answer.text());
  return { events, fold };
}
