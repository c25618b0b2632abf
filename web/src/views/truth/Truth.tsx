/** The truth panel: what really happened to an answer, drawn to scale from its log. */

import { useEffect, useMemo, useState } from "preact/hooks";
import "../../styles/river.css";
import "../../styles/truth.css";
import { ApiError } from "../../api";
import { readLog } from "../../log";
import type { LiveRun } from "../../runs";
import { live, release } from "../../state";
import { timelineOf } from "../../timeline";
import type { LogEvent, RunShape } from "../../wire";
import { Dialog } from "../Overlay";
import { Chart } from "./Chart";
import { Facts, KnownFacts } from "./Facts";
import { Moments } from "./Moments";
import { RawEvents } from "./RawEvents";

/** While it goes on, it is drawn so often. */
const REDRAW_MS = 250;

type Found =
  | { state: "loading" }
  | { state: "log"; events: readonly LogEvent[] }
  | { state: "live"; run: LiveRun }
  | { state: "gone"; message: string; run: RunShape | null };

export function Truth({ runId, close }: { runId: string; close(): void }) {
  const found = useLog(runId);
  return (
    <Dialog title="What really happened" close={close} class="truth">
      {found.state === "loading" && <p class="hint">Reading the log…</p>}
      {found.state === "gone" && <Gone message={found.message} run={found.run} />}
      {found.state === "log" && <Told runId={runId} events={found.events} run={null} />}
      {found.state === "live" && <Told runId={runId} events={found.run.events} run={found.run} />}
    </Dialog>
  );
}

function useLog(runId: string): Found {
  const [found, setFound] = useState<Found>(() => {
    const run = live.get(runId);
    return run ? { state: "live", run } : { state: "loading" };
  });
  useEffect(() => {
    if (found.state === "live") {
      // To its end, also when the answer that it belongs to shows what is stored already.
      found.run.shownBy++;
      return () => release(found.run);
    }
    readLog(runId).then(
      (log) => setFound({ state: "log", events: log.events }),
      (error) => {
        const run = error instanceof ApiError ? (error.facts.run as RunShape | undefined) : undefined;
        setFound({ state: "gone", message: String(error?.message ?? error), run: run ?? null });
      },
    );
    return undefined;
  }, [runId]);
  return found;
}

/** Past its retention: a run's outcome is kept for ever, its events are not. */
function Gone({ message, run }: { message: string; run: RunShape | null }) {
  return (
    <div class="truth-gone">
      <p>
        {run
          ? "The events of this answer are no longer kept: a log has its time (store.keep_logs_days), what was said stays. This is what is still known."
          : message}
      </p>
      {run && <KnownFacts run={run} />}
    </div>
  );
}

interface ToldProps {
  runId: string;
  events: readonly LogEvent[];
  run: LiveRun | null;
}

function Told({ runId, events, run }: ToldProps) {
  const [drawn, draw] = useState(0);
  const [at, setAt] = useState<number | null>(null);
  const ended = run === null || run.fold.outcome !== null;
  useEffect(() => {
    if (ended) return;
    const timer = setInterval(() => draw((n) => n + 1), REDRAW_MS);
    return () => clearInterval(timer);
  }, [ended]);
  const timeline = useMemo(() => {
    const nowMs = run && !ended ? run.fold.lastMs + (performance.now() - run.heardAt) : null;
    return timelineOf(events, nowMs);
  }, [events, events.length, drawn, ended]);
  return (
    <>
      <Facts timeline={timeline} />
      <Chart timeline={timeline} at={at} setAt={setAt} />
      <Moments timeline={timeline} at={at} setAt={setAt} />
      <RawEvents runId={runId} events={events} count={events.length} show={setAt} />
    </>
  );
}
