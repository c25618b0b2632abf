/**
 * What answers took: tokens, and how fast they came. Pure.
 *
 * A figure is the provider's, estimated by us, or unknown. What is unknown is never 0.
 */

import { grouped } from "./when";
import type { RunSummary, Usage } from "./wire";

export type Sure = "provider" | "estimated" | "unknown";

export interface Tokens {
  /** Null: nobody knows. */
  count: number | null;
  sure: Sure;
}

export const UNKNOWN: Tokens = { count: null, sure: "unknown" };

/** English and code have about four characters to a token; it is marked as what it is. */
const CHARS_PER_TOKEN = 4;
/** What came within so short a time came at once: a speed would be made up. */
const SHORTEST_MS = 200;

/** `chars`: of all that was said, for where the provider has said nothing. */
export function outputTokens(usage: Usage | null | undefined, chars: number): Tokens {
  const given = reported(usage, usage?.output_tokens);
  if (given.count !== null) return given;
  return chars > 0 ? { count: Math.ceil(chars / CHARS_PER_TOKEN), sure: "estimated" } : UNKNOWN;
}

export function inputTokens(usage: Usage | null | undefined): Tokens {
  return reported(usage, usage?.input_tokens);
}

function reported(usage: Usage | null | undefined, count: number | null | undefined): Tokens {
  if (count === undefined || count === null) return UNKNOWN;
  return { count, sure: usage?.source === "provider" ? "provider" : "estimated" };
}

export function tokensText({ count, sure }: Tokens): string {
  if (count === null) return "unknown";
  return `${sure === "estimated" ? "~" : ""}${grouped(count)}`;
}

export function sureText(sure: Sure): string {
  const texts: Record<Sure, string> = {
    provider: "as the provider counted",
    estimated: "estimated from its length: the provider reported none",
    unknown: "the provider reported none",
  };
  return texts[sure];
}

/** Tokens a second between the first and the last. Null: it can't be told. */
export function perSecond(tokens: Tokens, firstMs: number | null, lastMs: number | null): number | null {
  if (tokens.count === null || firstMs === null || lastMs === null) return null;
  if (tokens.count < 2 || lastMs - firstMs < SHORTEST_MS) return null;
  return (tokens.count - 1) / ((lastMs - firstMs) / 1000);
}

export function speedText(speed: number): string {
  return speed < 10 ? speed.toFixed(1) : grouped(Math.round(speed));
}

export function msBetween(from: string | null | undefined, to: string | null | undefined): number | null {
  return from && to ? Date.parse(to) - Date.parse(from) : null;
}

/** Over turns, as sure as the least sure of them: what one of them does not tell, the sum does not know. */
export function sumUsage(turns: readonly (Usage | undefined)[]): Usage | null {
  const given = turns.filter((usage) => usage !== undefined);
  if (!given.length) return null;
  const sum: Usage = {};
  for (const name of COUNTS) {
    const counts = given.map((usage) => usage[name]);
    if (counts.every((count) => typeof count === "number")) {
      sum[name] = counts.reduce((a, b) => a + b, 0);
    }
  }
  if (given.every((usage) => usage.source === "provider")) sum.source = "provider";
  return sum;
}

const COUNTS = [
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "reasoning_tokens",
  "cache_write_tokens",
] as const;

/** Of a conversation: all that was asked of models, also on branches that are not shown. */
export interface Total {
  input: Tokens;
  output: Tokens;
  answers: number;
  /** Of so many answers nobody knows what they took: the counts are at least so much. */
  unknown: number;
}

export function total(runs: readonly Pick<RunSummary, "usage" | "started_at" | "outcome">[]): Total {
  // What has not ended has not been counted yet; what never began took nothing.
  const asked = runs.filter((run) => run.outcome !== null && run.started_at !== null);
  const outputs = asked.map((run) => reported(run.usage, run.usage.output_tokens));
  return {
    input: sum(asked.map((run) => inputTokens(run.usage))),
    output: sum(outputs),
    answers: asked.length,
    unknown: outputs.filter((tokens) => tokens.count === null).length,
  };
}

function sum(all: Tokens[]): Tokens {
  const known = all.filter((tokens) => tokens.count !== null);
  if (!known.length) return UNKNOWN;
  return {
    count: known.reduce((sum, tokens) => sum + (tokens.count ?? 0), 0),
    sure: known.some((tokens) => tokens.sure === "estimated") ? "estimated" : "provider",
  };
}
