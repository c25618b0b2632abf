/** What an answer took: tokens and speed, and how sure that is. */

import type { OpenSession } from "../session";
import { runsOf } from "../tally";
import { msBetween, outputTokens, perSecond, speedText, sumUsage, sureText, tokensText } from "../usage";
import { duration } from "../when";
import type { MessageItem } from "../wire";

interface Props {
  session: OpenSession;
  runId: string;
  messages: MessageItem[];
}

export function Figures({ session, runId, messages }: Props) {
  const known = runsOf(session).value.get(runId);
  // What was known while it went on is not what it took.
  const run = known?.outcome ? known : undefined;
  const chars = messages.reduce((sum, one) => sum + one.content.length + (one.reasoning?.length ?? 0), 0);
  const usage = run?.usage ?? sumUsage(messages.map((message) => message.usage ?? {}));
  const tokens = outputTokens(usage, chars);
  const firstMs = msBetween(run?.started_at, run?.first_token_at);
  // Only of one that came to its end, with no tool in it, is the end also that of the last token.
  const plain = run?.outcome?.type === "completed" && !messages.some((one) => one.tool_calls?.length);
  const speed = plain ? perSecond(tokens, firstMs, msBetween(run.started_at, run.ended_at)) : null;
  return (
    <span class="figures">
      <span class={tokens.sure === "provider" ? undefined : "unsure"} title={sureText(tokens.sure)}>
        {tokens.count === null ? "tokens unknown" : `${tokensText(tokens)} tokens`}
      </span>
      {speed !== null && <span title="From the first token to the last">{` · ${speedText(speed)}/s`}</span>}
      {firstMs !== null && (
        <span class="figures-first" title="From the question to the first token">
          {` · first after ${duration(firstMs)}`}
        </span>
      )}
    </span>
  );
}
