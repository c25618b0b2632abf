/** The runs that this tab follows, each folded as its events come. */

import { type Signal, signal } from "@preact/signals";
import { apply, type Fold, newFold } from "./fold";
import { painter } from "./frame";
import type { LogEvent } from "./wire";

export class LiveRun {
  readonly fold: Fold;
  /** All of them, from the first: the truth panel draws them while they come. */
  readonly events: LogEvent[] = [];
  /** Where our own clock was when the last one came. */
  heardAt = performance.now();
  /** Grows once a frame while events come: whoever shows the fold reads it. */
  readonly version: Signal<number> = signal(0);
  /** Where the follower's own clock was when the run began, for what counts while nothing comes. */
  readonly seenAt = performance.now();
  /** By so many: the last one to leave lets it go. */
  shownBy = 0;
  private readonly bump = () => {
    this.version.value++;
  };

  constructor(
    readonly id: string,
    model: string,
    readonly sessionId: string | null,
  ) {
    this.fold = newFold(id, model);
  }

  take(event: LogEvent): void {
    this.events.push(event);
    this.heardAt = performance.now();
    apply(this.fold, event);
    // An ending is told at once: a hidden tab has no frames.
    if (event.type === "ended") this.bump();
    else painter.ask(this.bump);
  }
}

export class LiveRuns {
  private readonly runs = new Map<string, LiveRun>();

  get(id: string): LiveRun | undefined {
    return this.runs.get(id);
  }

  add(id: string, model: string, sessionId: string | null): LiveRun {
    let run = this.runs.get(id);
    if (!run) {
      run = new LiveRun(id, model, sessionId);
      this.runs.set(id, run);
    }
    return run;
  }

  remove(id: string): void {
    this.runs.delete(id);
  }
}
