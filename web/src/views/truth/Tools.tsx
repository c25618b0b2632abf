/** Tool calls: asked for, waited for, run, and what became of them. */

import type { Timeline, ToolSpan } from "../../timeline";
import { duration } from "../../when";
import { type Drawing, textPx } from "./drawing";

const BAR_PX = 18;

export function Tools({ timeline, drawing }: { timeline: Timeline; drawing: Drawing }) {
  return (
    <g>
      {timeline.tools.map((tool, n) => (
        <Tool key={n} tool={tool} top={drawing.toolTop[n]!} drawing={drawing} />
      ))}
    </g>
  );
}

function Tool({ tool, top, drawing }: { tool: ToolSpan; top: number; drawing: Drawing }) {
  const { x } = drawing;
  const middle = top + BAR_PX / 2;
  const from = tool.runMs ?? tool.toMs;
  const width = Math.max(3, x(tool.toMs) - x(from));
  const took = tool.runMs === null ? tool.state : duration(tool.toMs - tool.runMs);
  const text = `${tool.name} · ${took}${tool.state === "done" || tool.runMs === null ? "" : ` · ${tool.state}`}`;
  const inside = width > textPx(text) + 14;
  const right = x(tool.toMs) + 8 + textPx(text) < drawing.width;
  const textX = inside ? x(from) + 8 : right ? x(tool.toMs) + 8 : x(tool.askedMs) - 8;
  return (
    <g class={`tool-span ${tool.state}`}>
      <line class="asked-for" x1={x(tool.askedMs)} x2={x(from)} y1={middle} y2={middle} />
      {tool.waited && (
        <rect
          class="leave"
          x={x(tool.waited.fromMs)}
          y={top + 4}
          width={Math.max(2, x(tool.waited.toMs) - x(tool.waited.fromMs))}
          height={BAR_PX - 8}
          rx={4}
        />
      )}
      {tool.runMs !== null && <rect class="ran" x={x(from)} y={top} width={width} height={BAR_PX} rx={6} />}
      <circle class="asked" cx={x(tool.askedMs)} cy={middle} r={3.5} />
      <text
        class={inside ? "inside" : undefined}
        x={textX}
        y={middle + 4}
        text-anchor={inside || right ? "start" : "end"}
      >
        {text}
      </text>
    </g>
  );
}
