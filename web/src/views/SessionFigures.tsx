/** What a conversation has taken so far. */

import type { OpenSession } from "../session";

export function SessionFigures(_: { session: OpenSession }) {
  return null;
}
