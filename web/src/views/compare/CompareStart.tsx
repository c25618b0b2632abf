/** Where a comparison begins: who is asked, and what. */

import { signal } from "@preact/signals";
import { api, newKey } from "../../api";
import { remember, remembered } from "../../drafts";
import { go, paths } from "../../router";
import { fail, models } from "../../state";
import type { Group } from "../../wire";
import { Head } from "../Chat";
import { type Composed, Composer, suggestion } from "../Composer";
import { Icon } from "../Icon";
import { ModelPicker } from "../ModelPicker";
import { Past } from "./Past";

const LEAST = 2;
const MOST = 8;
const KEPT = "compare";

/** The one that was just made, so that its page need not fetch it. */
export const made = {
  group: null as Group | null,
  take(id: string): Group | null {
    const group = this.group?.id === id ? this.group : null;
    this.group = null;
    return group;
  },
};

const chosen = signal<string[] | null>(null);

/** What was chosen last, as far as it is still there; else some that are. */
function choice(): string[] {
  if (chosen.value) return chosen.value;
  const known = models.value.map((model) => model.id);
  const kept = (remembered(KEPT) ?? "").split("\n").filter((id) => known.includes(id));
  if (kept.length >= LEAST) return kept.slice(0, MOST);
  const real = models.value.filter((model) => model.owned_by !== "demo").map((model) => model.id);
  const demo = ["demo/story", "demo/think", "demo/flaky"].filter((id) => known.includes(id));
  return [...real.slice(0, 3), ...demo].slice(0, Math.max(LEAST, Math.min(3, known.length)));
}

function choose(ids: string[]): void {
  chosen.value = ids;
  remember(KEPT, ids.join("\n"));
}

const TRIES = [
  { models: ["demo/story", "demo/think", "demo/echo"], prompt: "Tell me the story of a river." },
  { models: ["demo/story", "demo/flaky", "demo/think"], prompt: "Cut after 30, and tell me about rivers." },
  { models: ["demo/flaky", "demo/story"], prompt: "Stall after 15, please." },
];

export function CompareStart() {
  const ids = choice();
  const send = async (said: Composed) => {
    try {
      const group = await api.compare(ids, { content: said.content, parts: said.parts }, newKey());
      made.group = group;
      go(paths.compare(group.id));
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  };
  const known = new Set(models.value.map((model) => model.id));
  const tries = TRIES.filter((one) => one.models.every((id) => known.has(id)));
  return (
    <main class="main new compare">
      <Head title="Compare" />
      <div class="thread-place">
        <div class="thread centred">
          <div class="empty compare-start">
            <Icon name="columns" size={40} />
            <h1>Ask several at once</h1>
            <p class="lead">
              Two to eight models answer side by side. Each is stopped on its own, says how it ended, and can
              be gone on with.
            </p>
            <ul class="chosen" aria-label="Models to compare">
              {ids.map((id, n) => (
                <li key={`${n} ${id}`}>
                  <ModelPicker
                    chosen={id}
                    label={`Model ${n + 1}`}
                    up={false}
                    choose={(other) => choose(ids.map((one, at) => (at === n ? other : one)))}
                  />
                  <button
                    type="button"
                    class="icon-button"
                    aria-label={`Remove ${id}`}
                    disabled={ids.length <= LEAST}
                    onClick={() => choose(ids.filter((_, at) => at !== n))}
                  >
                    <Icon name="close" size={14} />
                  </button>
                </li>
              ))}
              {ids.length < MOST && (
                <li class="add">
                  <ModelPicker
                    chosen="Add a model"
                    label="Add"
                    up={false}
                    choose={(id) => choose([...ids, id])}
                  />
                </li>
              )}
            </ul>
            {tries.length > 0 && (
              <div class="compare-tries">
                <span class="hint">With no key at all:</span>
                {tries.map((one) => (
                  <button
                    key={one.prompt}
                    type="button"
                    class="button small"
                    onClick={() => {
                      choose(one.models);
                      suggestion.value = one.prompt;
                    }}
                  >
                    {one.prompt}
                  </button>
                ))}
              </div>
            )}
            <Past />
          </div>
        </div>
      </div>
      <div class="foot">
        <Composer place="compare" busy={false} placeholder={`Ask all ${ids.length}…`} send={send} />
      </div>
    </main>
  );
}
