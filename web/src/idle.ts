/** What nobody waits for, one piece at a time, when the browser has nothing else to do. */

const LATEST_MS = 1000;

const waiting: (() => void)[] = [];

export function whenIdle(act: () => void): void {
  waiting.push(act);
  if (waiting.length === 1) plan();
}

function plan(): void {
  // Safari has no idle time.
  if ("requestIdleCallback" in globalThis) requestIdleCallback(next, { timeout: LATEST_MS });
  else setTimeout(next, 50);
}

function next(): void {
  const act = waiting[0]!;
  try {
    act();
  } finally {
    waiting.shift();
    if (waiting.length) plan();
  }
}
