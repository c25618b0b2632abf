/** Opens the truth panel of an answer, which is loaded only then. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { fail } from "../state";
import { Icon } from "./Icon";
import type * as Panel from "./truth/Truth";

/** Whose panel is open. It stands on its own, so that it stays when an answer that it shows has come to its end. */
const shown = signal<string | null>(null);

export function TruthButton({ runId }: { runId: string }) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-haspopup="dialog"
      aria-label="What really happened"
      title="What really happened: this answer's timeline"
      onClick={() => {
        shown.value = runId;
      }}
    >
      <Icon name="pulse" size={16} />
    </button>
  );
}

/** Where it is shown: once, beside everything else. */
export function TruthPlace() {
  const runId = shown.value;
  const [panel, setPanel] = useState<typeof Panel | null>(null);
  useEffect(() => {
    if (runId !== null && !panel) void import("./truth/Truth").then(setPanel, fail);
  }, [runId]);
  if (runId === null || !panel) return null;
  const close = () => {
    shown.value = null;
  };
  return <panel.Truth key={runId} runId={runId} close={close} />;
}
