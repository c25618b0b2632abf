/** Where everything stands in the picture. Pure. */

import { fastest, lanesOf, riverPath, rowsOf, type Stream, streamsOf } from "../../river";
import type { Timeline } from "../../timeline";

export const PAD_PX = 18;
/** A lane: its name, a line of labels, the river. */
export const LANE_PX = 118;
export const LABEL_PX = 42;
const MIDDLE_PX = 82;
const WIDEST_PX = 29;
const THINNEST_PX = 1.4;
const DEEP = 0.55;
const TOOL_PX = 30;
/** How finely the river is drawn. */
const STEP_PX = 4;

export interface PlacedLane {
  name: string;
  top: number;
  middle: number;
}

export interface River {
  path: string;
  /** Its inner part: as wide as it is fast, too, on a smaller scale. */
  deep: string;
  kind: Stream["kind"];
  givenUp: boolean;
}

export interface Drawing {
  width: number;
  height: number;
  endMs: number;
  lanes: PlacedLane[];
  /** Of each attempt. */
  laneOf: number[];
  rivers: River[];
  fastest: number;
  /** Of each tool: its top. */
  toolTop: number[];
  x(ms: number): number;
  time(x: number): number;
}

export function drawingOf(timeline: Timeline, width: number): Drawing {
  const { endMs, attempts } = timeline;
  const scale = (width - 2 * PAD_PX) / endMs;
  const x = (ms: number) => PAD_PX + ms * scale;
  const lanes = lanesOf(attempts).map((lane, n) => ({
    ...lane,
    top: n * LANE_PX,
    middle: n * LANE_PX + MIDDLE_PX,
  }));
  const laneOf = attempts.map((_, n) => lanes.findIndex((lane) => lane.attempts.includes(n)));
  const streams = attempts.flatMap((attempt, n) =>
    streamsOf(attempt, timeline.words, ownGaps(timeline, n), STEP_PX / scale).map((stream) => ({
      stream,
      n,
    })),
  );
  const most = fastest(streams.map(({ stream }) => stream));
  const half = (rate: number) => THINNEST_PX + (rate / most) * (WIDEST_PX - THINNEST_PX);
  const lanesPx = Math.max(1, lanes.length) * LANE_PX;
  const rows = rowsOf(timeline.tools);
  const toolRows = rows.length ? Math.max(...rows) + 1 : 0;
  return {
    width,
    height: lanesPx + (toolRows ? toolRows * TOOL_PX + 10 : 0),
    endMs,
    lanes,
    laneOf,
    rivers: streams.map(({ stream, n }) => ({
      path: riverPath(stream, x, lanes[laneOf[n]!]!.middle, half),
      deep: riverPath(stream, x, lanes[laneOf[n]!]!.middle, (rate) => half(rate) * DEEP),
      kind: stream.kind,
      givenUp: stream.givenUp,
    })),
    fastest: most,
    toolTop: rows.map((row) => lanesPx + row * TOOL_PX),
    x,
    time: (px) => Math.max(0, Math.min(endMs, (px - PAD_PX) / scale)),
  };
}

function ownGaps(timeline: Timeline, attempt: number) {
  return timeline.gaps.filter((gap) => gap.attempt === attempt);
}

/** Room that a text takes, as far as one can tell without asking the browser. */
export function textPx(text: string): number {
  return text.length * 6.3;
}
