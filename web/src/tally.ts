/** What the runs of the conversation that is open took: fetched again whenever something of it was stored. */

import { effect, type Signal, signal } from "@preact/signals";
import { api } from "./api";
import type { OpenSession } from "./session";
import type { RunSummary } from "./wire";

const kept = new WeakMap<OpenSession, Signal<ReadonlyMap<string, RunSummary>>>();

/** By id; those of all branches. */
export function runsOf(session: OpenSession): Signal<ReadonlyMap<string, RunSummary>> {
  let runs = kept.get(session);
  if (!runs) {
    runs = signal(new Map());
    kept.set(session, runs);
    keepUp(session, runs);
  }
  return runs;
}

function keepUp(session: OpenSession, runs: Signal<ReadonlyMap<string, RunSummary>>): void {
  let asked = 0;
  // It ends with the session: nothing else holds on to either.
  effect(() => {
    if (!session.items.value.some((item) => item.run_id)) return;
    const mine = ++asked;
    void api.runs({ session_id: session.id }).then(
      (found) => {
        // Answers may overtake each other.
        if (mine === asked) runs.value = new Map(found.map((run) => [run.id, run]));
      },
      // They are figures beside the answer: it is there without them.
      () => {},
    );
  });
}
