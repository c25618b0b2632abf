/** One paint a frame: whatever comes in between is shown together. */

const waiting = new Set<() => void>();
let frame = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** A window that is covered may get no frames for seconds, and is told nothing of it. */
const LATEST_MS = 250;

/** `paint` is called once before the next paint, however often it is asked for. */
export function beforePaint(paint: () => void): void {
  waiting.add(paint);
  if (timer !== undefined) return;
  frame = requestAnimationFrame(flush);
  timer = setTimeout(flush, LATEST_MS);
}

function flush(): void {
  cancelAnimationFrame(frame);
  clearTimeout(timer);
  timer = undefined;
  const paints = [...waiting];
  waiting.clear();
  for (const paint of paints) paint();
}
