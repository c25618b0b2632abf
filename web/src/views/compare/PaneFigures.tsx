/** Time to the first token, tokens a second, tokens: as far as they are known, and how surely. */

import type { Fold } from "../../fold";
import type { LiveRun } from "../../runs";
import {
  msBetween,
  outputTokens,
  perSecond,
  speedText,
  sumUsage,
  sureText,
  type Tokens,
  tokensText,
} from "../../usage";
import { duration } from "../../when";
import type { MessageItem, RunShape } from "../../wire";

export interface PaneNumbers {
  firstMs: number | null;
  tokens: Tokens;
  speed: number | null;
}

interface Props {
  run: LiveRun | null;
  shape: RunShape | null;
  /** What is stored of it. */
  messages: MessageItem[];
}

export function PaneFigures({ run, shape, messages }: Props) {
  const { firstMs, tokens, speed } = run
    ? ofFold(run.fold)
    : shape?.outcome
      ? ofShape(shape)
      : ofMessages(messages);
  return (
    <dl class="pane-figures">
      <Figure
        name="first"
        more=" token"
        value={firstMs === null ? null : duration(firstMs)}
        title="From the question to the first token"
      />
      <Figure
        name="tokens/s"
        value={speed === null ? null : `${tokens.sure === "estimated" ? "~" : ""}${speedText(speed)}`}
        title="From the first token to the last"
      />
      <Figure
        name="tokens"
        value={tokens.count === null ? null : tokensText(tokens)}
        title={sureText(tokens.sure)}
      />
    </dl>
  );
}

interface FigureProps {
  name: string;
  /** Where there is room for it. */
  more?: string;
  value: string | null;
  title: string;
}

function Figure({ name, more, value, title }: FigureProps) {
  return (
    <div title={title}>
      <dt>
        {name}
        {more && <span class="roomy">{more}</span>}
      </dt>
      <dd class={value === null ? "unknown" : undefined}>
        {value ?? (
          <>
            <span aria-hidden="true">–</span>
            <span class="sr">unknown</span>
          </>
        )}
      </dd>
    </div>
  );
}

function ofFold(fold: Fold): PaneNumbers {
  let chars = 0;
  let lastMs: number | null = null;
  let called = false;
  for (const part of fold.parts) {
    if (part.kind === "call") called = true;
    if (part.kind !== "text" && part.kind !== "reasoning") continue;
    chars += part.text.length;
    lastMs = part.toMs ?? lastMs;
  }
  const tokens = outputTokens(fold.usage, chars);
  // A tool's time is not the model's.
  return {
    firstMs: fold.firstTokenMs,
    tokens,
    speed: called ? null : perSecond(tokens, fold.firstTokenMs, lastMs),
  };
}

/** Its run was last looked at before it ended. */
function ofMessages(messages: MessageItem[]): PaneNumbers {
  const chars = messages.reduce((sum, one) => sum + one.content.length + (one.reasoning?.length ?? 0), 0);
  const usage = sumUsage(messages.map((message) => message.usage ?? {}));
  return { firstMs: null, tokens: outputTokens(usage, chars), speed: null };
}

function ofShape(run: RunShape): PaneNumbers {
  const tokens = outputTokens(run.usage, run.text.length + run.reasoning.length);
  const firstMs = msBetween(run.started_at, run.first_token_at);
  const lastMs = msBetween(run.started_at, run.last_token_at);
  return { firstMs, tokens, speed: run.tool_calls.length ? null : perSecond(tokens, firstMs, lastMs) };
}
