/** What an answer took: tokens, and how sure that is. */

import type { MessageItem, Outcome } from "../wire";

interface Props {
  sessionId: string;
  runId: string;
  messages: MessageItem[];
  outcome: Outcome | null;
}

export function Figures({ messages }: Props) {
  const usage = messages.at(-1)?.usage;
  if (usage?.output_tokens === undefined) return null;
  return (
    <span class="figures">
      {usage.source === "estimated" ? "~" : ""}
      {usage.output_tokens.toLocaleString()} tokens
    </span>
  );
}
