import { expect, test } from "vitest";
import { byDay, dayOf, duration, grouped } from "../src/when";

const now = new Date(2026, 10, 16, 12);
const at = (day: number, month = 10) => new Date(2026, month, day, 23, 59).toISOString();

test.each([
  [at(16), "Today"],
  [at(15), "Yesterday"],
  [at(12), "Thursday"],
  [at(1), "Last 30 days"],
  [at(3, 4), "May 2026"],
])("%s is %s", (when, day) => {
  expect(dayOf(when, now)).toBe(day);
});

test("what is next to each other and of one day is one group", () => {
  const groups = byDay([at(16), at(16), at(15)], (when) => when, now);
  expect(groups.map((group) => [group.day, group.items.length])).toEqual([
    ["Today", 2],
    ["Yesterday", 1],
  ]);
});

test.each([
  [12, "12 ms"],
  [999, "1.0 s"],
  [3210, "3.2 s"],
  [42_000, "42 s"],
  [125_000, "2 min 5 s"],
  [7_260_000, "2 h 1 min"],
])("%d ms is %s", (ms, said) => {
  expect(duration(ms)).toBe(said);
});

test.each([
  [0, "0"],
  [999, "999"],
  [1234, "1,234"],
  [12_345_678, "12,345,678"],
])("%d is %s", (n, said) => {
  expect(grouped(n)).toBe(said);
});
