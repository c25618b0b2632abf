/** How an answer ended, if that was not the end that one hopes for; and the way on. */

import { endingText, isWhole, toneOf } from "../endings";
import type { OpenSession } from "../session";
import type { Item, MessageItem, NoticeItem, Outcome, OutcomeType } from "../wire";
import { Icon } from "./Icon";

const ENDINGS: ReadonlySet<string> = new Set(["stopped", "failed", "interrupted", "incomplete"]);

/** It tells of an ending, which is shown by itself. */
export function isEnding(notice: NoticeItem): boolean {
  return ENDINGS.has(notice.code);
}

/** All that is known of an answer of which nothing was kept. */
export function endingOf(notices: Item[]): Outcome | null {
  const own = notices.find((item): item is NoticeItem => item.kind === "notice" && isEnding(item));
  return own ? { type: own.code as OutcomeType, message: own.text } : null;
}

interface Props {
  session: OpenSession;
  runId: string;
  outcome: Outcome | null;
  notices: Item[];
  /** What was to be answered. */
  askedId: string | null;
  /** The first message of the answer, if anything of it was kept. */
  first: MessageItem | undefined;
  /** Tools were run for it. */
  ranTools: boolean;
  /** Nothing comes after it: it can be gone on with. */
  last: boolean;
}

export function Ending({ session, runId, outcome, notices, askedId, first, ranTools, last }: Props) {
  const ending = outcome ?? endingOf(notices);
  if (!ending || isWhole(ending)) return null;
  const again = first?.id ?? askedId;
  return (
    <div class={`ending ${toneOf(ending)}`}>
      <span class="ending-text">
        {first && <b>Partial.</b>} {endingText(ending)}
        {first && <span class="kept"> Every word that arrived is kept.</span>}
      </span>
      {last && (
        <span class="ending-actions">
          {first && (
            <button type="button" class="button small primary" onClick={() => void session.goOn(runId)}>
              <Icon name="forward" size={14} /> Continue
            </button>
          )}
          {again && (
            <button type="button" class="button small" onClick={() => void session.retry(again)}>
              <Icon name="retry" size={14} /> {ranTools ? "Retry, tools run again" : "Retry"}
            </button>
          )}
        </span>
      )}
    </div>
  );
}
