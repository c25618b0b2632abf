import { expect, test } from "vitest";
import { backoffMs, Cursors } from "../src/cursors";

test("an event is taken once, and in its place", () => {
  const cursors = new Cursors();
  cursors.add("a", -1);
  expect(cursors.take("a", 0)).toBe("new");
  expect(cursors.take("a", 0)).toBe("seen");
  expect(cursors.take("a", 2)).toBe("gap");
  expect(cursors.take("a", 1)).toBe("new");
  expect(cursors.take("a", 2)).toBe("new");
  expect(cursors.at("a")).toBe(2);
});

test("what is not followed is not taken", () => {
  const cursors = new Cursors();
  cursors.add("a", 3);
  cursors.remove("a");
  expect(cursors.take("a", 4)).toBe("stranger");
});

test("following again from earlier does not go back: nothing comes twice", () => {
  const cursors = new Cursors();
  cursors.add("a", 7);
  cursors.add("a", -1);
  expect(cursors.at("a")).toBe(7);
});

test("cursors are written as the server reads them", () => {
  const cursors = new Cursors();
  cursors.add("run_a", 12);
  cursors.add("run_b", -1);
  expect(String(cursors)).toBe("run_a:12,run_b:-1");
});

test("waiting grows to five seconds, and is never none", () => {
  const waits = [0, 1, 2, 3, 4, 5, 50].map((n) => backoffMs(n, 1));
  expect(waits).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000]);
  expect(backoffMs(0, 0)).toBe(125);
});
