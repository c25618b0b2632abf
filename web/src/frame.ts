/**
 * One paint a frame at the most: whatever comes in between is shown together.
 *
 * What a paint costs is measured, with the browser's own work after it, and the page is left alone for twice that:
 * however fast tokens come and however slow the machine is, most of its time is for the person in front of it. What is
 * shown is made in a task before the frame, so that neither of them is long.
 */

export interface Screen {
  now(): number;
  after(ms: number, act: () => void): () => void;
  /** At the end of what goes on now. */
  onDone(act: () => void): void;
  /** As the next frame begins; gives back how to take it back. */
  onFrame(act: () => void): () => void;
  /** Once the browser has done what belongs to a frame: style, layout and paint. */
  onPainted(act: () => void): void;
}

/** No more is begun for a frame after so long. */
const MAKING_MS = 8;
/** For so many times as long as a paint took, the next one waits. */
const REST = 2;
/** But not longer: what comes is to be seen to come. */
const LONGEST_MS = 150;
/** A window that is covered may get no frames for seconds, and is told nothing of it. */
const LATEST_MS = 250;

export class Painter {
  private readonly waiting = new Set<() => void>();
  private busy = false;
  private freeAt = 0;

  constructor(private readonly screen: Screen) {}

  /** `paint` is called once before one of the next frames, however often it is asked for. */
  ask(paint: () => void): void {
    this.waiting.add(paint);
    if (!this.busy) this.plan();
  }

  /** As soon as there is a frame for it: more of what is there already, and was too much for one. */
  askSoon(paint: () => void): void {
    this.freeAt = 0;
    this.ask(paint);
  }

  private plan(): void {
    this.busy = true;
    this.screen.after(Math.max(0, this.freeAt - this.screen.now()), () => this.make(this.screen.now()));
  }

  /** One after the other, those that have waited longest first; what there is no time for waits for the next frame. */
  private make(began: number): void {
    const { screen } = this;
    const [paint] = this.waiting;
    this.waiting.delete(paint!);
    try {
      paint!();
    } finally {
      screen.onDone(() => {
        const madeMs = screen.now() - began;
        if (this.waiting.size && madeMs < MAKING_MS) this.make(began);
        else this.show(madeMs);
      });
    }
  }

  private show(madeMs: number): void {
    const { screen } = this;
    const forget = screen.onFrame(() => {
      giveUp();
      const began = screen.now();
      screen.onPainted(() => this.rest(madeMs + screen.now() - began));
    });
    const giveUp = screen.after(LATEST_MS, () => {
      forget();
      this.rest(madeMs);
    });
  }

  private rest(costMs: number): void {
    this.freeAt = this.screen.now() + Math.min(LONGEST_MS, REST * costMs);
    this.busy = false;
    if (this.waiting.size) this.plan();
  }
}

// ------------------------------------------------------------------ in a browser

const browser: Screen = {
  now: () => performance.now(),
  after(ms, act) {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  // What Preact makes of a change is a microtask that waits already.
  onDone: (act) => queueMicrotask(act),
  onFrame(act) {
    const frame = requestAnimationFrame(act);
    return () => cancelAnimationFrame(frame);
  },
  onPainted(act) {
    // A message is a task of its own, and a frame is one task.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      act();
    };
    port2.postMessage(null);
  },
};

export const painter = new Painter(browser);
