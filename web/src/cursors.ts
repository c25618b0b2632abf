/** Where each run that is followed stands. Pure: what is new, what was seen, what is missing. */

export type Verdict = "new" | "seen" | "gap" | "stranger";

export class Cursors {
  private readonly seqs = new Map<string, number>();

  get size(): number {
    return this.seqs.size;
  }

  has(runId: string): boolean {
    return this.seqs.has(runId);
  }

  at(runId: string): number | undefined {
    return this.seqs.get(runId);
  }

  /** Follows from after `seq`. One that is further already stays there: nothing comes twice. */
  add(runId: string, seq: number): void {
    this.seqs.set(runId, Math.max(seq, this.seqs.get(runId) ?? -1));
  }

  remove(runId: string): boolean {
    return this.seqs.delete(runId);
  }

  /** Takes an event's place, if it is the next one of its run. */
  take(runId: string, seq: number): Verdict {
    const at = this.seqs.get(runId);
    if (at === undefined) return "stranger";
    if (seq <= at) return "seen";
    // `seq` is dense: what is missing was lost on the way, and is asked for again.
    if (seq > at + 1) return "gap";
    this.seqs.set(runId, seq);
    return "new";
  }

  /** As `/api/events?runs=` wants it. */
  toString(): string {
    return [...this.seqs].map(([runId, seq]) => `${runId}:${seq}`).join(",");
  }
}

/** How long to wait before try `n` (from 0): doubling, with jitter so that many pages don't come back at once. */
export function backoffMs(n: number, random: number): number {
  const most = Math.min(5000, 250 * 2 ** n);
  return Math.round(most * (0.5 + random / 2));
}
