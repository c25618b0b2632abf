/** What waits, and how it is put in order. Pure. */

import type { ImageIn, Queue, QueueItem } from "./wire";

/** The order in which runs are to come, with one of them moved. */
export function moved(queue: Queue, from: number, to: number): string[] {
  const order = queue.items.map((item) => item.run.id);
  order.splice(to, 0, ...order.splice(from, 1));
  return order;
}

/** As it will be once the server has said so: shown at once. */
export function reordered(queue: Queue, order: string[]): Queue {
  const rank = new Map(order.map((id, n) => [id, n]));
  const at = (item: QueueItem) => rank.get(item.run.id) ?? order.length;
  return { ...queue, items: [...queue.items].sort((a, b) => at(a) - at(b)) };
}

export function without(queue: Queue, runId: string): Queue | null {
  const items = queue.items.filter((item) => item.run.id !== runId);
  return items.length || queue.paused ? { ...queue, items } : null;
}

export function imagesOf(item: QueueItem): ImageIn[] {
  return item.parts.flatMap((part) =>
    part.type === "image" && part.blob ? [{ type: "image", blob: part.blob }] : [],
  );
}
