/** The way between branches: what was said, or answered, in the same place. */

import type { OpenSession } from "../session";
import type { MessageItem } from "../wire";
import { Icon } from "./Icon";

export function Branches({ session, message }: { session: OpenSession; message: MessageItem }) {
  const all = message.siblings;
  if (all.length < 2) return null;
  const at = all.indexOf(message.id);
  const turn = (to: number) => void session.showBranch(all[to]!);
  return (
    <span class="branches" role="group" aria-label="Branches">
      <button
        type="button"
        class="icon-button"
        aria-label="Previous branch"
        disabled={at <= 0}
        onClick={() => turn(at - 1)}
      >
        <Icon name="left" size={15} />
      </button>
      <span class="branch-at">
        {at + 1}/{all.length}
      </span>
      <button
        type="button"
        class="icon-button"
        aria-label="Next branch"
        disabled={at >= all.length - 1}
        onClick={() => turn(at + 1)}
      >
        <Icon name="right" size={15} />
      </button>
    </span>
  );
}
