import { describe, expect, it } from "vitest";
import { columnsFor } from "../src/layout";
import { inputTokens, outputTokens, perSecond, speedText, sumUsage, tokensText, total } from "../src/usage";

describe("tokens", () => {
  it("are the provider's where it has counted them", () => {
    const tokens = outputTokens({ output_tokens: 1234, source: "provider" }, 40);
    expect(tokens).toEqual({ count: 1234, sure: "provider" });
    expect(tokensText(tokens)).toBe("1,234");
  });

  it("are estimated, and marked so, where it has not", () => {
    expect(outputTokens({}, 41)).toEqual({ count: 11, sure: "estimated" });
    expect(tokensText(outputTokens(null, 41))).toBe("~11");
  });

  it("are unknown, and never 0, where there is nothing to go by", () => {
    expect(outputTokens(undefined, 0)).toEqual({ count: null, sure: "unknown" });
    expect(tokensText(inputTokens({ source: "unknown" }))).toBe("unknown");
    expect(tokensText(outputTokens({ output_tokens: 0, source: "provider" }, 0))).toBe("0");
  });

  it("of turns are added, and what one does not know the sum does not", () => {
    expect(sumUsage([])).toBeNull();
    expect(
      sumUsage([
        { input_tokens: 5, output_tokens: 2, source: "provider" },
        { output_tokens: 3, source: "provider" },
      ]),
    ).toEqual({ output_tokens: 5, source: "provider" });
    expect(
      sumUsage([{ output_tokens: 1, source: "provider" }, { output_tokens: 1 }])?.source,
    ).toBeUndefined();
  });

  it("of a conversation say how many answers are not in them", () => {
    const at = "2026-11-16T06:00:00Z";
    const outcome = { type: "completed" as const };
    const usage = { input_tokens: 10, output_tokens: 5, source: "provider" as const };
    const known = { usage, started_at: at, outcome };
    const silent = { usage: {}, started_at: at, outcome };
    const sum = total([known, known, silent, { ...silent, outcome: null }, { ...silent, started_at: null }]);
    expect(sum).toEqual({
      input: { count: 20, sure: "provider" },
      output: { count: 10, sure: "provider" },
      answers: 3,
      unknown: 1,
    });
    expect(total([silent]).output.count).toBeNull();
  });
});

describe("speed", () => {
  it("is that from the first token to the last", () => {
    const speed = perSecond({ count: 101, sure: "provider" }, 500, 2500);
    expect(speed).toBe(50);
    expect(speedText(50.4)).toBe("50");
    expect(speedText(3.14)).toBe("3.1");
  });

  it("can't be told of what came at once, or of what nobody counted", () => {
    expect(perSecond({ count: 101, sure: "provider" }, 500, 510)).toBeNull();
    expect(perSecond({ count: null, sure: "unknown" }, 500, 2500)).toBeNull();
    expect(perSecond({ count: 5, sure: "provider" }, null, 2500)).toBeNull();
  });
});

describe("panes", () => {
  it("fit the screen, each as large as can be", () => {
    expect([2, 3, 4, 6, 8].map((panes) => columnsFor(panes, 1080, 680))).toEqual([2, 3, 2, 3, 4]);
    expect([2, 3, 4, 8].map((panes) => columnsFor(panes, 820, 620))).toEqual([2, 3, 2, 4]);
    expect(columnsFor(3, 300, 600)).toBe(1);
    expect(columnsFor(8, 2400, 900)).toBe(4);
  });
});
