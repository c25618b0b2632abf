/** Opens the truth panel of an answer, which is loaded only then. */

import { useState } from "preact/hooks";
import { fail } from "../state";
import { Icon } from "./Icon";
import type * as Panel from "./truth/Truth";

export function TruthButton({ runId }: { runId: string }) {
  const [panel, setPanel] = useState<typeof Panel | null>(null);
  const open = () => void import("./truth/Truth").then(setPanel, fail);
  return (
    <>
      <button
        type="button"
        class="icon-button"
        aria-haspopup="dialog"
        aria-label="What really happened"
        title="What really happened: this answer's timeline"
        onClick={open}
      >
        <Icon name="pulse" size={16} />
      </button>
      {panel && <panel.Truth runId={runId} close={() => setPanel(null)} />}
    </>
  );
}
