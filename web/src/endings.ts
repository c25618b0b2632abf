/** How an ending is told to a person. One place: whatever shows an outcome asks here. */

import type { Outcome } from "./wire";

const SAID: Record<string, string> = {
  "incomplete/length": "Cut off by its token limit.",
  "incomplete/content_filter": "Ended by the provider's content filter.",
  "incomplete/turn_limit": "Ended: all of its turns are used up.",
  "stopped/user": "Stopped by you.",
  "stopped/disconnect": "Stopped: nobody was following it any more.",
  "stopped/replaced": "Stopped: a newer message took its place.",
  "interrupted/crash": "Interrupted: the server went down in mid-answer.",
  "interrupted/shutdown": "Interrupted: the server was shut down.",
  "interrupted/store": "Interrupted: the store could not keep it.",
};

export function endingText(outcome: Outcome): string {
  if (outcome.type === "failed") return outcome.message || "It failed.";
  const said = SAID[`${outcome.type}/${outcome.reason}`] ?? outcome.message;
  return said || `${outcome.type}: ${outcome.reason ?? "no reason given"}`;
}

/** Only one of them is a success (C81). */
export function isWhole(outcome: Outcome | null | undefined): boolean {
  return outcome?.type === "completed";
}

export type Tone = "ok" | "calm" | "warn" | "bad";

export function toneOf(outcome: Outcome): Tone {
  const tones: Record<Outcome["type"], Tone> = {
    completed: "ok",
    stopped: "calm",
    incomplete: "warn",
    interrupted: "warn",
    failed: "bad",
  };
  return tones[outcome.type];
}
