/** What was written and not sent, kept for each conversation in this browser. */

import type { ImageIn } from "./wire";

export interface Draft {
  text: string;
  images: ImageIn[];
}

const EMPTY: Draft = { text: "", images: [] };
const PREFIX = "headwater.draft.";

/** `place` is a session's id, or "new". */
export function readDraft(place: string, storage: Storage = localStorage): Draft {
  try {
    const kept = JSON.parse(storage.getItem(PREFIX + place) ?? "null");
    return kept && typeof kept.text === "string" ? { text: kept.text, images: kept.images ?? [] } : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function keepDraft(place: string, draft: Draft, storage: Storage = localStorage): void {
  try {
    if (draft.text || draft.images.length) storage.setItem(PREFIX + place, JSON.stringify(draft));
    else storage.removeItem(PREFIX + place);
  } catch {
    // Full, or forbidden: then it lives as long as the tab.
  }
}

export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`headwater.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`headwater.${name}`, value);
  } catch {
    // As above.
  }
}
