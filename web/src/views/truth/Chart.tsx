/** The picture: time from left to right, to scale; a lane for each upstream, with its tokens as a river. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { readingOf } from "../../reading";
import { ticksOf, tickText } from "../../river";
import type { Moment, Timeline } from "../../timeline";
import { grouped } from "../../when";
import { Icon } from "../Icon";
import { type Drawing, drawingOf, PAD_PX } from "./drawing";
import { Lanes } from "./Lanes";
import { Reading } from "./Reading";
import { Tools } from "./Tools";

const ZOOMS = [1, 2, 4, 8, 16, 32];
const AXIS_PX = 28;

interface Props {
  timeline: Timeline;
  at: number | null;
  setAt(t: number | null): void;
}

export function Chart({ timeline, at, setAt }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(720);
  const [zoom, setZoom] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setSeen(Math.max(240, entry!.contentRect.width)));
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  const drawing = useMemo(() => drawingOf(timeline, seen * ZOOMS[zoom]!), [timeline, seen, zoom]);
  const height = drawing.height + AXIS_PX;
  const timeAt = (event: PointerEvent) => {
    const box = scroller.current!;
    const x = event.clientX - box.getBoundingClientRect().left + box.scrollLeft;
    return drawing.time(x);
  };
  const zoomTo = (next: number) => {
    const box = scroller.current!;
    const middle = at ?? drawing.time(box.scrollLeft + seen / 2);
    setZoom(next);
    const width = seen * ZOOMS[next]!;
    requestAnimationFrame(() => {
      box.scrollLeft = PAD_PX + (middle / timeline.endMs) * (width - 2 * PAD_PX) - seen / 2;
    });
  };
  return (
    <section class="chart" aria-label="Timeline">
      <div class="chart-place">
        <div
          class="chart-scroll"
          ref={scroller}
          role="slider"
          tabIndex={0}
          aria-label="Time"
          aria-orientation="horizontal"
          aria-valuemin={0}
          aria-valuemax={Math.round(timeline.endMs)}
          aria-valuenow={Math.round(at ?? timeline.endMs)}
          aria-valuetext={readingOf(timeline, at ?? timeline.endMs).spoken}
          onPointerMove={(event) => setAt(timeAt(event))}
          onPointerDown={(event) => setAt(timeAt(event))}
          onPointerLeave={(event) => {
            if (event.pointerType === "mouse") setAt(null);
          }}
          onKeyDown={(event) => {
            const next = stepped(event, timeline, at ?? timeline.endMs);
            if (next === null) return;
            event.preventDefault();
            setAt(next);
            keepInSight(scroller.current!, drawing.x(next));
          }}
        >
          <svg width={drawing.width} height={height} aria-hidden="true" class="river">
            <Axis drawing={drawing} height={height} />
            <Lanes timeline={timeline} drawing={drawing} />
            <Tools timeline={timeline} drawing={drawing} />
            {at !== null && (
              <line class="cursor" x1={drawing.x(at)} x2={drawing.x(at)} y1={0} y2={drawing.height + 4} />
            )}
          </svg>
        </div>
        <div class="lane-names" aria-hidden="true">
          {drawing.lanes.map((lane) => (
            <span key={lane.name} style={{ top: `${lane.top}px` }}>
              {lane.name}
            </span>
          ))}
        </div>
      </div>
      <div class="chart-foot">
        <Legend timeline={timeline} drawing={drawing} />
        <span class="spacer" />
        <button
          type="button"
          class="icon-button"
          aria-label="Zoom out"
          disabled={zoom === 0}
          onClick={() => zoomTo(zoom - 1)}
        >
          <Icon name="minus" size={16} />
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label="Zoom in"
          disabled={zoom === ZOOMS.length - 1}
          onClick={() => zoomTo(zoom + 1)}
        >
          <Icon name="plus" size={16} />
        </button>
      </div>
      <Reading timeline={timeline} at={at ?? timeline.endMs} />
    </section>
  );
}

/** Arrows go by a hundredth, Page Up and Down from moment to moment. */
function stepped(event: KeyboardEvent, timeline: Timeline, at: number): number | null {
  const step = timeline.endMs / (event.shiftKey ? 20 : 100);
  const before = (one: Moment) => one.t < at - 0.5;
  const after = (one: Moment) => one.t > at + 0.5;
  const next: Record<string, number | undefined> = {
    ArrowRight: at + step,
    ArrowLeft: at - step,
    PageDown: timeline.moments.find(after)?.t ?? timeline.endMs,
    PageUp: timeline.moments.findLast(before)?.t ?? 0,
    Home: 0,
    End: timeline.endMs,
  };
  const to = next[event.key];
  return to === undefined ? null : Math.max(0, Math.min(timeline.endMs, to));
}

function keepInSight(box: HTMLElement, x: number): void {
  if (x < box.scrollLeft + 40) box.scrollLeft = x - 80;
  else if (x > box.scrollLeft + box.clientWidth - 40) box.scrollLeft = x - box.clientWidth + 80;
}

function Axis({ drawing, height }: { drawing: Drawing; height: number }) {
  const ticks = ticksOf(drawing.endMs, drawing.width - 2 * PAD_PX);
  return (
    <g class="axis">
      {ticks.map((ms) => (
        <g key={ms}>
          <line x1={drawing.x(ms)} x2={drawing.x(ms)} y1={0} y2={drawing.height + 4} />
          <text x={drawing.x(ms)} y={height - 8}>
            {tickText(ms)}
          </text>
        </g>
      ))}
    </g>
  );
}

function Legend({ timeline, drawing }: { timeline: Timeline; drawing: Drawing }) {
  const kinds = new Set(timeline.words.map((word) => word.kind));
  const names = { text: "text", reasoning: "reasoning", arguments: "tool arguments" } as const;
  return (
    <ul class="legend">
      {(["reasoning", "text", "arguments"] as const).map(
        (kind) =>
          kinds.has(kind) && (
            <li key={kind}>
              <span class={`swatch ${kind}`} />
              {names[kind]}
            </li>
          ),
      )}
      {timeline.attempts.some((attempt) => attempt.givenUp && attempt.lastMs !== null) && (
        <li>
          <span class="swatch given-up" />
          given up
        </li>
      )}
      <li>
        <span class="swatch waiting" />
        waiting
      </li>
      {timeline.gaps.length > 0 && (
        <li>
          <span class="swatch silent" />
          silence
        </li>
      )}
      {drawing.fastest > 0 && <li>widest: {grouped(Math.round(drawing.fastest))} tokens/s</li>}
    </ul>
  );
}
