/** The comparisons that were made before, so that one can be found again, or be forgotten. */

import { useEffect, useState } from "preact/hooks";
import "../../styles/past.css";
import { groups, keepGroups, loadMoreGroups, moreGroups, removeGroup } from "../../groups";
import { paths } from "../../router";
import { active, fail } from "../../state";
import { byDay } from "../../when";
import type { GroupSummary } from "../../wire";
import { Deleting } from "../Deleting";
import { Icon } from "../Icon";

export function Past() {
  useEffect(keepGroups, []);
  const all = groups.value;
  if (!all?.length) return null;
  return (
    <section class="past" aria-label="Past comparisons">
      {byDay(all, (group) => group.created_at, new Date()).map(({ day, items }) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {items.map((group) => (
              <PastOne key={group.id} group={group} />
            ))}
          </ul>
        </section>
      ))}
      {moreGroups.value && (
        <button type="button" class="button small" onClick={() => void loadMoreGroups().catch(fail)}>
          Older
        </button>
      )}
    </section>
  );
}

function PastOne({ group }: { group: GroupSummary }) {
  const [deleting, setDeleting] = useState(false);
  const title = group.title ?? "Comparison";
  const runs = group.panes.flatMap((pane) => active.value.get(pane.session_id)?.id ?? []);
  const at = new Date(group.created_at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return (
    <li class="past-one">
      <a href={paths.compare(group.id)}>
        <span class="past-title">
          {runs.length > 0 && <span class="dot" />}
          <span>{title}</span>
          {runs.length > 0 && <span class="sr">, running</span>}
        </span>
        <span class="past-models">
          {group.panes.map((pane, n) => (
            <span key={pane.session_id}>
              {n > 0 && " · "}
              <span class={pane.session_id === group.picked_id ? "picked" : undefined}>
                {pane.model}
                {pane.session_id === group.picked_id && <span class="sr"> (picked)</span>}
              </span>
            </span>
          ))}
        </span>
        <time dateTime={group.created_at}>{at}</time>
      </a>
      <button
        type="button"
        class="icon-button"
        aria-label={`Delete ${title}`}
        title="Delete"
        onClick={() => setDeleting(true)}
      >
        <Icon name="trash" size={15} />
      </button>
      {deleting && (
        <Deleting
          what="comparison"
          title={title}
          running={runs.length > 0}
          note={group.picked_id ? "The answer that was picked stays, as a conversation." : ""}
          remove={() => void removeGroup(group, runs)}
          close={() => setDeleting(false)}
        />
      )}
    </li>
  );
}
