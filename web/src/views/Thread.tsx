/** The conversation, from top to bottom. It goes along with what comes, unless the reader has scrolled away. */

import { useEffect, useLayoutEffect } from "preact/hooks";
import { route } from "../router";
import type { OpenSession } from "../session";
import { Answer } from "./Answer";
import { useFollowing } from "./following";
import { Icon } from "./Icon";
import { PendingSaid, Said } from "./Said";

const NEAR_PX = 48;

export function Thread({ session }: { session: OpenSession }) {
  const { box, inner, away, onScroll, follow, leave } = useFollowing(NEAR_PX);
  const isPending = session.pending.value !== null;
  // Who says something looks at it; what begins by itself moves nobody.
  useLayoutEffect(() => {
    if (isPending) follow();
  }, [isPending]);
  useLayoutEffect(() => {
    if (session.asked.value) follow();
  }, [session.asked.value]);
  const wanted = route.value.at === "session" ? route.value.messageId : null;
  useEffect(() => {
    if (!wanted || !session.loaded.value) return;
    const found = box.current?.querySelector<HTMLElement>(`[data-message="${CSS.escape(wanted)}"]`);
    if (!found) return;
    leave();
    found.scrollIntoView({ block: "center" });
    found.classList.add("found");
  }, [wanted, session.loaded.value]);
  return (
    <div class="thread-place">
      <div class="thread" ref={box} onScroll={onScroll} tabIndex={0} role="region" aria-label="Conversation">
        <div class="column" ref={inner}>
          {shownRows(session)}
        </div>
      </div>
      {away && (
        <button type="button" class="to-end" onClick={follow}>
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
        last={false}
      />,
    );
  }
  if (pending) shown.push(<PendingSaid key="pending" pending={pending} />);
  return shown;
}

const NONE: never[] = [];
