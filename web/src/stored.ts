/** What a conversation's stored items say of what was said, and of its runs. Pure. */

import type { Item } from "./wire";

export function lastSaidId(items: Item[]): string | null {
  return items.findLast((item) => item.kind === "message" && item.role === "user")?.id ?? null;
}

/** Something was said with this content after that message. */
export function isAmong(
  items: Item[],
  { afterId, content }: { afterId: string | null; content: string },
): boolean {
  const after = items.slice(items.findIndex((item) => item.id === afterId) + 1);
  return after.some((item) => item.kind === "message" && item.role === "user" && item.content === content);
}

/** The runs of which something is stored: what they said, or how they went. */
export function storedIds(items: Item[]): Set<string> {
  const own = items.filter((item) => item.kind === "notice" || item.role === "assistant");
  return new Set(own.flatMap((item) => item.run_id ?? []));
}

/** Of a run whose end was stored before its last event came here. */
export function endingIn(items: Item[], runId: string): string {
  const own = items.filter((item) => item.run_id === runId);
  const outcome = own.findLast((item) => item.kind === "message" && item.outcome);
  if (outcome?.kind === "message") return outcome.outcome?.type ?? "";
  return own.findLast((item) => item.kind === "notice")?.code ?? "";
}
