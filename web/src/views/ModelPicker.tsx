/** Who is to answer: models and agents, by name. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { models } from "../state";
import type { Model } from "../wire";
import { Icon } from "./Icon";
import { dismissing, roving } from "./Overlay";

interface Props {
  chosen: string | null;
  choose(id: string): void;
  label?: string;
  up?: boolean;
}

export function ModelPicker({ chosen, choose, label = "Model", up = true }: Props) {
  const [open, setOpen] = useState(false);
  const [wanted, setWanted] = useState("");
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const close = (focus = true) => {
    setOpen(false);
    setWanted("");
    if (focus) button.current?.focus();
  };
  // Before anything more is typed.
  useLayoutEffect(() => {
    if (!open) return;
    panel.current!.querySelector("input")?.focus();
    return dismissing(panel.current!, button.current!, close);
  }, [open]);
  const groups = useMemo(() => grouped(models.value, wanted), [models.value, wanted]);
  const pick = (id: string) => {
    close();
    choose(id);
  };
  return (
    <span class="menu-place">
      <button
        type="button"
        ref={button}
        class="chip"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-label={`${label}: ${chosen ?? "none"}`}
        onClick={() => setOpen(!open)}
      >
        <span class="chip-text">{chosen ?? "Choose a model"}</span>
        <Icon name="down" size={14} />
      </button>
      {open && (
        <div
          ref={panel}
          class={`menu picker left ${up ? "up" : ""}`}
          role="dialog"
          aria-label={label}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown" || event.key === "ArrowUp") roving(event, panel.current!, "option");
          }}
        >
          <input
            class="field"
            type="search"
            placeholder="Find a model…"
            aria-label="Find a model"
            value={wanted}
            onInput={(event) => setWanted(event.currentTarget.value)}
            onKeyDown={(event) => {
              const first = groups[0]?.models[0];
              if (event.key === "Enter" && first) {
                event.preventDefault();
                pick(first.id);
              }
            }}
          />
          <div role="listbox" aria-label={label} class="options">
            {groups.map((group) => (
              <div role="group" aria-label={group.name} key={group.name}>
                <div class="group-name" aria-hidden="true">
                  {group.name}
                </div>
                {group.models.map((model) => (
                  <button
                    key={model.id}
                    type="button"
                    role="option"
                    aria-selected={model.id === chosen}
                    tabIndex={-1}
                    onClick={() => pick(model.id)}
                  >
                    <span>{model.id}</span>
                    {model.id === chosen && <Icon name="check" size={15} />}
                  </button>
                ))}
              </div>
            ))}
          </div>
          {!groups.length && (
            <p class="hint">
              {models.value.length ? "No model has that in its name." : "Asking for models…"}
            </p>
          )}
        </div>
      )}
    </span>
  );
}

interface Group {
  name: string;
  models: Model[];
}

/** Agents first: somebody made them for this. The demo comes last. */
export function grouped(all: Model[], wanted: string): Group[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, Model[]>();
  for (const model of all) {
    const name = model.owned_by === "agent" ? "Agents" : model.owned_by === "demo" ? "Demo" : model.owned_by;
    if (!words.every((word) => model.id.toLowerCase().includes(word))) continue;
    groups.set(name, [...(groups.get(name) ?? []), model]);
  }
  const rank = (name: string) => (name === "Agents" ? 0 : name === "Demo" ? 2 : 1);
  return [...groups].map(([name, models]) => ({ name, models })).sort((a, b) => rank(a.name) - rank(b.name));
}
