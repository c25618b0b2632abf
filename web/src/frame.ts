/** One paint a frame: whatever comes in between is shown together. */

const waiting = new Set<() => void>();
let asked = false;

/** `paint` is called once before the next paint, however often it is asked for. */
export function beforePaint(paint: () => void): void {
  waiting.add(paint);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const paints = [...waiting];
    waiting.clear();
    for (const paint of paints) paint();
  });
}
