/** Times and figures as people say them. Pure: "now" comes in. */

export function dayOf(at: string, now: Date): string {
  const then = new Date(at);
  const days = Math.round((midnight(now) - midnight(then)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return then.toLocaleDateString(undefined, { weekday: "long" });
  if (days < 30) return "Last 30 days";
  return then.toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

function midnight(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

export interface Day<T> {
  day: string;
  items: T[];
}

/** In the order in which they come: the newest first. */
export function byDay<T>(items: T[], when: (item: T) => string, now: Date): Day<T>[] {
  const days: Day<T>[] = [];
  for (const item of items) {
    const day = dayOf(when(item), now);
    const last = days.at(-1);
    if (last?.day === day) last.items.push(item);
    else days.push({ day, items: [item] });
  }
  return days;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `1,234`. By hand: what the browser has for it takes 30 ms the first time, which is as an answer ends. */
export function grouped(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** Always in seconds, so that one can be held against the other. */
export function clock(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 100_000 ? 2 : 0)} s`;
}
