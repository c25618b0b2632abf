import { expect, test } from "vitest";
import { imagesOf, moved, reordered, without } from "../src/queue";
import type { Queue } from "../src/wire";

const item = (id: string) => ({ run: { id }, content: id, parts: [] });
const queue = { paused: false, items: [item("a"), item("b"), item("c")] } as unknown as Queue;
const ids = (one: Queue | null) => one?.items.map((each) => each.run.id);

test("one is moved, the others keep their order", () => {
  expect(moved(queue, 0, 1)).toEqual(["b", "a", "c"]);
  expect(moved(queue, 2, 0)).toEqual(["c", "a", "b"]);
  expect(ids(reordered(queue, ["c", "a", "b"]))).toEqual(["c", "a", "b"]);
});

test("what is not named in an order comes behind it, as it was", () => {
  expect(ids(reordered(queue, ["b"]))).toEqual(["b", "a", "c"]);
});

test("taking out the last one leaves nothing, unless the queue is paused", () => {
  expect(ids(without(queue, "b"))).toEqual(["a", "c"]);
  const one = { ...queue, items: [queue.items[0]!] };
  expect(without(one, "a")).toBe(null);
  expect(without({ ...one, paused: true }, "a")).toEqual({ paused: true, items: [] });
});

test("an edit keeps the images", () => {
  const parts = [
    { type: "image", blob: "h" },
    { type: "other", name: "x" },
  ] as const;
  expect(imagesOf({ ...queue.items[0]!, parts: [...parts] })).toEqual([{ type: "image", blob: "h" }]);
});
