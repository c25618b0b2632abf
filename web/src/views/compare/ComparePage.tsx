/** A comparison: its panes, fitted to the screen, and one composer for all of them. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import "../../styles/compare.css";
import { Comparison } from "../../comparison";
import { columnsFor } from "../../layout";
import { go, paths } from "../../router";
import { overlays, say, sidebarOpen } from "../../state";
import { Head } from "../Chat";
import { Composer } from "../Composer";
import { Icon } from "../Icon";
import { copyText } from "../Markdown";
import { made } from "./CompareStart";
import { Pane } from "./Pane";

export { CompareStart } from "./CompareStart";

export function ComparePage({ id }: { id: string }) {
  const comparison = useMemo(() => new Comparison(id), [id]);
  const [expanded, setExpanded] = useState<string | null>(null);
  useEffect(() => {
    const group = made.take(id);
    if (group) comparison.show(group);
    else void comparison.load();
    return () => comparison.close();
  }, [comparison]);
  // Before anything more is typed.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || overlays.peek() || sidebarOpen.peek()) return;
      if (expanded) setExpanded(null);
      else if (comparison.busy.peek()) void comparison.stopAll();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [comparison, expanded]);
  if (comparison.missing.value) return <Missing />;
  const busy = comparison.busy.value;
  const pick = async (sessionId: string) => {
    if (await comparison.pick(sessionId)) go(paths.session(sessionId));
  };
  return (
    <main class="main compare">
      <Head title={comparison.prompt.value?.content || "Compare"}>
        {busy && (
          <button type="button" class="button small stop-all" onClick={() => void comparison.stopAll()}>
            <Icon name="stop" size={13} /> Stop all
          </button>
        )}
        <button
          type="button"
          class="icon-button"
          aria-label="Copy link to this comparison"
          title="Copy link to this comparison"
          onClick={() => void copyText(location.href).then(() => say("The link opens this comparison."))}
        >
          <Icon name="link" size={17} />
        </button>
        <a class="icon-button" href={paths.compare()} aria-label="New comparison" title="New comparison">
          <Icon name="plus" />
        </a>
      </Head>
      <Panes comparison={comparison} expanded={expanded} expand={setExpanded} pick={pick} />
      <div class="foot">
        <Composer
          place={`compare-${id}`}
          busy={busy}
          placeholder="Ask all of them…"
          send={({ content, parts }) => comparison.say({ content, parts })}
          stop={() => void comparison.stopAll()}
          stopLabel="Stop all"
        />
      </div>
    </main>
  );
}

interface PanesProps {
  comparison: Comparison;
  expanded: string | null;
  expand(id: string | null): void;
  pick(sessionId: string): Promise<void>;
}

function Panes({ comparison, expanded, expand, pick }: PanesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const seen = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width, height });
    });
    seen.observe(box.current!);
    return () => seen.disconnect();
  }, []);
  const panes = comparison.panes.value;
  const runs = new Map(comparison.group.value?.panes.map((pane) => [pane.session_id, pane]));
  const columns = expanded ? 1 : columnsFor(panes.length || 1, size.width, size.height);
  return (
    <div class="panes-place" ref={box}>
      <div
        class={expanded ? "panes one" : "panes"}
        role="group"
        aria-label="Answers side by side"
        tabIndex={0}
        style={{ "--columns": columns, "--rows": Math.ceil(panes.length / columns) }}
      >
        {panes.map((pane) => (
          <Pane
            key={pane.id}
            pane={pane}
            shape={runs.get(pane.id) ?? null}
            picked={comparison.group.value?.picked_id === pane.id}
            hidden={expanded !== null && expanded !== pane.id}
            expanded={expanded === pane.id}
            expand={() => expand(expanded === pane.id ? null : pane.id)}
            pick={() => void pick(pane.id)}
          />
        ))}
      </div>
    </div>
  );
}

function Missing() {
  return (
    <main class="main">
      <Head title="Not here" />
      <div class="thread-place">
        <div class="thread centred">
          <div class="empty">
            <h1>There is no such comparison</h1>
            <p class="lead">It belongs to somebody else, or was never made.</p>
            <a class="button primary" href={paths.compare()}>
              Make one
            </a>
          </div>
        </div>
      </div>
    </main>
  );
}
