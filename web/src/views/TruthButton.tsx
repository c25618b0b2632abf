/** Opens the truth panel: a run's log, event by event. */

import { Icon } from "./Icon";

export function TruthButton({ runId }: { runId: string }) {
  return (
    <a
      class="icon-button"
      href={`api/runs/${encodeURIComponent(runId)}/events`}
      target="_blank"
      rel="noreferrer"
      aria-label="What really happened"
      title="What really happened: the events of this answer"
    >
      <Icon name="pulse" size={16} />
    </a>
  );
}
