/** The conversation, from top to bottom. It goes along with what comes, unless the reader has scrolled away. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { route } from "../router";
import type { OpenSession } from "../session";
import { Answer } from "./Answer";
import { Icon } from "./Icon";
import { PendingSaid, Said } from "./Said";

/** So near the end counts as there. */
const NEAR_PX = 48;

export function Thread({ session }: { session: OpenSession }) {
  const scroller = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const top = useRef(0);
  const [away, setAway] = useState(false);
  const run = session.run.value;
  const pending = session.pending.value;

  const toEnd = () => {
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  // Whatever makes it longer: words, pictures, colours.
  useLayoutEffect(() => {
    const seen = new ResizeObserver(() => {
      if (stuck.current) toEnd();
    });
    seen.observe(inner.current!);
    seen.observe(scroller.current!);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (pending || run) {
      stuck.current = true;
      setAway(false);
      toEnd();
    }
  }, [pending !== null, run?.id]);
  const wanted = route.value.at === "session" ? route.value.messageId : null;
  useEffect(() => {
    if (!wanted || !session.loaded.value) return;
    const found = scroller.current?.querySelector<HTMLElement>(`[data-message="${CSS.escape(wanted)}"]`);
    if (!found) return;
    stuck.current = false;
    found.scrollIntoView({ block: "center" });
    found.classList.add("found");
  }, [wanted, session.loaded.value]);

  const onScroll = () => {
    const box = scroller.current!;
    const near = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
    // Only who goes up leaves: what came meanwhile makes the end further away, too.
    if (near || box.scrollTop < top.current) stuck.current = near;
    top.current = box.scrollTop;
    setAway(!stuck.current);
  };
  return (
    <div class="thread-place">
      <div
        class="thread"
        ref={scroller}
        onScroll={onScroll}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
      >
        <div class="column" ref={inner}>
          {shownRows(session)}
        </div>
      </div>
      {away && (
        <button
          type="button"
          class="to-end"
          onClick={() => {
            stuck.current = true;
            toEnd();
          }}
        >
          <Icon name="down" size={16} /> {session.isBusy ? "Follow along" : "To the end"}
        </button>
      )}
    </div>
  );
}

/** One list, by run: an answer stays the same element from its first word until it is stored, and after. */
function shownRows(session: OpenSession) {
  const rows = session.rows.value;
  const run = session.run.value;
  const pending = session.pending.value;
  let askedId: string | null = null;
  const shown = rows.map((row, n) => {
    if (row.kind === "said") {
      askedId = row.message.id;
      return <Said key={row.id} session={session} message={row.message} />;
    }
    if (row.kind === "notice") {
      return (
        <p class="remark" key={row.id}>
          {row.text}
        </p>
      );
    }
    return (
      <Answer
        key={row.id}
        session={session}
        runId={row.runId}
        messages={row.messages}
        notices={row.notices}
        run={session.liveRun(row.runId)}
        askedId={askedId}
        last={n === rows.length - 1 && !run && !pending}
      />
    );
  });
  if (pending) shown.push(<PendingSaid key="pending" pending={pending} />);
  if (run && !rows.some((row) => row.kind === "answer" && row.runId === run.id)) {
    shown.push(
      <Answer
        key={run.id}
        session={session}
        runId={run.id}
        messages={NONE}
        notices={NONE}
        run={run}
        askedId={askedId}
        last
      />,
    );
  }
  return shown;
}

const NONE: never[] = [];
