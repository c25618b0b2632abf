/** The lanes: waiting, the river, silences, what broke, where it went on, and the end. */

import { toneOf } from "../../endings";
import { bendPath, withRoom } from "../../river";
import { type Attempt, endingTitle, type Timeline } from "../../timeline";
import { duration } from "../../when";
import { type Drawing, LABEL_PX, textPx } from "./drawing";

interface Props {
  timeline: Timeline;
  drawing: Drawing;
}

export function Lanes({ timeline, drawing }: Props) {
  const middle = (n: number) => drawing.lanes[drawing.laneOf[n]!]!.middle;
  const { x } = drawing;
  return (
    <g>
      {timeline.attempts.map((attempt, n) => {
        const before = timeline.attempts[n - 1];
        return (
          <g key={n}>
            {before && (
              <path
                class={`bend ${attempt.reason}`}
                d={bendPath(x(before.toMs), middle(n - 1), x(attempt.fromMs), middle(n))}
              />
            )}
            <line
              class="waited"
              x1={x(attempt.fromMs)}
              x2={x(attempt.firstMs ?? attempt.toMs)}
              y1={middle(n)}
              y2={middle(n)}
            />
          </g>
        );
      })}
      {drawing.rivers.map((river, n) => {
        const name = `water ${river.kind} ${river.givenUp ? "given-up" : ""}`;
        return (
          <g key={n}>
            <path class={name} d={river.path} />
            <path class={`${name} deep`} d={river.deep} />
          </g>
        );
      })}
      {timeline.gaps.map((gap, n) => (
        <line
          key={n}
          class="silence"
          x1={x(gap.fromMs)}
          x2={x(gap.toMs)}
          y1={middle(gap.attempt)}
          y2={middle(gap.attempt)}
        />
      ))}
      {timeline.attempts.map((attempt, n) => (
        <Marks key={n} attempt={attempt} middle={middle(n)} drawing={drawing} />
      ))}
      {drawing.lanes.map((lane, n) => (
        <Labels key={lane.name} timeline={timeline} drawing={drawing} lane={n} top={lane.top} />
      ))}
      <End timeline={timeline} drawing={drawing} />
    </g>
  );
}

function Marks({ attempt, middle, drawing }: { attempt: Attempt; middle: number; drawing: Drawing }) {
  const { x } = drawing;
  const end = x(attempt.toMs);
  return (
    <g>
      <circle class="asked" cx={x(attempt.fromMs)} cy={middle} r={4} />
      {attempt.firstMs !== null && <circle class="first" cx={x(attempt.firstMs)} cy={middle} r={4.5} />}
      {attempt.failed && (
        <g class="broken">
          <circle cx={end} cy={middle} r={8} />
          <path d={`M${end - 3} ${middle - 3}l6 6m0-6l-6 6`} />
        </g>
      )}
    </g>
  );
}

interface Label {
  x: number;
  width: number;
  text: string;
  tone: string;
}

function Labels({ timeline, drawing, lane, top }: Props & { lane: number; top: number }) {
  const labels: Label[] = [];
  const most = drawing.width - 6;
  const put = (ms: number, text: string, tone: string, side: "centre" | "right" | "left" = "centre") => {
    const width = textPx(text);
    const at = drawing.x(ms) - { centre: width / 2, right: -7, left: width + 8 }[side];
    labels.push({ x: Math.max(6, Math.min(most - width, at)), width, text, tone });
  };
  const own = timeline.attempts
    .map((attempt, n) => ({ attempt, n }))
    .filter(({ n }) => drawing.laneOf[n] === lane);
  if (timeline.outcome && own.some(({ n }) => n === timeline.attempts.length - 1)) {
    const tone = toneOf(timeline.outcome);
    put(timeline.endMs, `${endingTitle(timeline.outcome)} · ${duration(timeline.endMs)}`, tone, "left");
  }
  for (const { attempt } of own) if (attempt.failed) put(attempt.toMs, brokenText(attempt), "bad");
  for (const { attempt } of own) {
    if (attempt.firstMs === null) continue;
    put(attempt.firstMs, `first token ${duration(attempt.firstMs - attempt.fromMs)}`, "accent", "right");
  }
  for (const { attempt } of own) {
    const said = {
      retry: "retry",
      fallback: "fallback",
      continue: "goes on",
      not_streaming: "not streamed",
      first: "",
    };
    if (said[attempt.reason]) put(attempt.fromMs, said[attempt.reason], "warn", "right");
  }
  for (const gap of timeline.gaps) {
    if (drawing.laneOf[gap.attempt] !== lane) continue;
    put((gap.fromMs + gap.toMs) / 2, `${duration(gap.toMs - gap.fromMs)} of silence`, "warn");
  }
  return (
    <g>
      {withRoom(labels).map((label, n) => (
        <text key={n} class={`label ${label.tone}`} x={label.x} y={top + LABEL_PX}>
          {label.text}
        </text>
      ))}
    </g>
  );
}

function brokenText(attempt: Attempt): string {
  if (attempt.status && attempt.status >= 400) return `failed: HTTP ${attempt.status}`;
  return `failed: ${(attempt.failed?.reason ?? "").replaceAll("_", " ")}`;
}

/** One ending, as it was decided. */
function End({ timeline, drawing }: Props) {
  const { outcome } = timeline;
  const last = timeline.attempts.length - 1;
  const x = drawing.x(timeline.endMs);
  const y = last < 0 ? 60 : drawing.lanes[drawing.laneOf[last]!]!.middle;
  if (!outcome) return <circle class="going" cx={x} cy={y} r={6} />;
  const glyphs = {
    completed: `M${x - 3.5} ${y}l2.5 2.8 4.8-5.4`,
    stopped: `M${x - 2.6} ${y - 2.6}h5.2v5.2h-5.2z`,
    incomplete: `M${x} ${y - 3.6}v4.2m0 2.8v.2`,
    failed: `M${x - 3} ${y - 3}l6 6m0-6l-6 6`,
    interrupted: `M${x} ${y - 3.6}v4.2m0 2.8v.2`,
  };
  return (
    <g class={`end ${toneOf(outcome)}`}>
      <line x1={x} x2={x} y1={0} y2={drawing.height + 4} />
      <circle cx={x} cy={y} r={9} />
      <path d={glyphs[outcome.type]} />
    </g>
  );
}
