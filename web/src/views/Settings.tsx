/** What holds for one conversation: what the model is told first, and how it is to answer. */

import { useState } from "preact/hooks";
import type { Parameters } from "../wire";
import { Dialog } from "./Overlay";

interface Props {
  parameters: Parameters;
  save(parameters: Parameters): void;
  close(): void;
}

type NumberName = "temperature" | "top_p" | "max_tokens";

const NUMBERS: { name: NumberName; label: string; min: string; max?: string; step: string }[] = [
  { name: "temperature", label: "Temperature", min: "0", max: "10", step: "any" },
  { name: "top_p", label: "Top p", min: "0", max: "1", step: "any" },
  { name: "max_tokens", label: "Most tokens", min: "1", step: "1" },
];

export function Settings({ parameters, save, close }: Props) {
  const [given, setGiven] = useState<Parameters>(parameters);
  const number = (name: NumberName) => (event: Event) => {
    const text = (event.currentTarget as HTMLInputElement).value;
    setGiven({ ...given, [name]: text === "" ? null : Number(text) });
  };
  return (
    <Dialog title="Conversation settings" close={close}>
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          save(given);
          close();
        }}
      >
        <label>
          Instructions
          <textarea
            class="field grows"
            rows={4}
            placeholder="What the model should know, or how it should speak"
            value={given.system ?? ""}
            onInput={(event) => setGiven({ ...given, system: event.currentTarget.value || null })}
          />
        </label>
        <div class="fields">
          {NUMBERS.map(({ name, label, ...limits }) => (
            <label key={name}>
              {label}
              <input
                class="field"
                type="number"
                placeholder="model's own"
                value={given[name] ?? ""}
                onInput={number(name)}
                {...limits}
              />
            </label>
          ))}
          <label>
            Reasoning effort
            <select
              class="field"
              value={given.reasoning_effort ?? ""}
              onChange={(event) =>
                setGiven({ ...given, reasoning_effort: event.currentTarget.value || null })
              }
            >
              <option value="">model's own</option>
              {["none", "minimal", "low", "medium", "high", "xhigh"].map((effort) => (
                <option key={effort} value={effort}>
                  {effort}
                </option>
              ))}
            </select>
          </label>
        </div>
        <p class="hint">What is left empty is left to the model. It holds from the next message on.</p>
        <div class="row end">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
