/** Past comparisons, while somebody looks at them: fetched again whenever one was made, changed or deleted. */

import { batch, signal } from "@preact/signals";
import { api } from "./api";
import { fail, failToFetch, watch } from "./state";
import type { GroupSummary } from "./wire";

/** Null: not known yet. */
export const groups = signal<GroupSummary[] | null>(null);
export const moreGroups = signal<string | null>(null);

const SOON_MS = 120;

/** Call what is given back. */
export function keepGroups(): () => void {
  let soon: ReturnType<typeof setTimeout> | undefined;
  const loadSoon = () => {
    clearTimeout(soon);
    soon = setTimeout(() => void load(), SOON_MS);
  };
  const unwatch = watch({
    onChanged: (kind) => {
      if (kind === "group") loadSoon();
    },
    onReturn: loadSoon,
  });
  void load();
  return () => {
    clearTimeout(soon);
    unwatch();
  };
}

let asked = 0;
/** Those that are being deleted: until that is done, the server still knows them. */
const leaving = new Set<string>();

async function load(): Promise<void> {
  const mine = ++asked;
  try {
    const page = await api.groups();
    if (mine !== asked) return;
    batch(() => {
      groups.value = staying(page.groups);
      moreGroups.value = page.next;
    });
  } catch (error) {
    failToFetch(error);
  }
}

export async function loadMoreGroups(): Promise<void> {
  const before = moreGroups.value;
  if (!before) return;
  const mine = ++asked;
  const page = await api.groups(before);
  if (mine !== asked) return;
  batch(() => {
    groups.value = [...(groups.value ?? []), ...staying(page.groups)];
    moreGroups.value = page.next;
  });
}

function staying(all: GroupSummary[]): GroupSummary[] {
  return all.filter((group) => !leaving.has(group.id));
}

/** What of it still runs is stopped first. */
export async function removeGroup(group: GroupSummary, runIds: string[]): Promise<void> {
  leaving.add(group.id);
  groups.value = groups.value && staying(groups.value);
  try {
    await Promise.all(runIds.map((id) => api.stop(id)));
    await api.deleteGroup(group.id);
  } catch (error) {
    leaving.delete(group.id);
    fail(error);
  }
  await load();
}
