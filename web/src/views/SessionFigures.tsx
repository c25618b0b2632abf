/** What a conversation has taken so far, on all its branches. */

import type { OpenSession } from "../session";
import { runsOf } from "../tally";
import { type Tokens, type Total, tokensText, total } from "../usage";

export function SessionFigures({ session }: { session: OpenSession }) {
  const sum = total([...runsOf(session).value.values()]);
  if (!sum.answers) return null;
  const answers = sum.answers === 1 ? "1 answer" : `${sum.answers} answers`;
  const missing = sum.unknown ? `; of ${sum.unknown} of them the provider reported none` : "";
  return (
    <span
      class="session-figures"
      role="img"
      aria-label={`${said(sum.input, sum.unknown)} tokens in, ${said(sum.output, sum.unknown)} out, in ${answers}${missing}`}
      title={`Tokens of ${answers}, on all branches${missing}`}
    >
      <span aria-hidden="true">{shown(sum)}</span>
    </span>
  );
}

function shown({ input, output, unknown }: Total) {
  if (input.count === null && output.count === null) return "tokens unknown";
  return (
    <>
      <span class="in">{said(input, unknown)} in · </span>
      {said(output, unknown)} out
    </>
  );
}

/** With a plus where it is at least so many. */
function said(tokens: Tokens, unknown: number): string {
  return tokens.count !== null && unknown ? `${tokensText(tokens)}+` : tokensText(tokens);
}
