/** Before the first word: what this is, and three things to try. */

import { chooseModel, models } from "../state";
import { suggestion } from "./Composer";
import { Icon, type IconName } from "./Icon";

interface Try {
  icon: IconName;
  title: string;
  text: string;
  model: string;
  prompt: string;
}

const TRIES: Try[] = [
  {
    icon: "pulse",
    title: "Watch it stream",
    text: "Then reload in the middle, or open a second tab: it goes on where it was.",
    model: "demo/story",
    prompt: "Tell me the story of a river.",
  },
  {
    icon: "stop",
    title: "Stop it, then continue",
    text: "Esc stops it, too. Every word that arrived is kept, and Continue goes on from the last one.",
    model: "demo/story",
    prompt: "Tell me of another river, and take your time.",
  },
  {
    icon: "warn",
    title: "See a stream break",
    text: "The connection is cut after 20 tokens. The page says so, and offers a way on.",
    model: "demo/flaky",
    prompt: "Please cut after 20.",
  },
];

export function Empty() {
  const known = new Set(models.value.map((model) => model.id));
  return (
    <div class="empty">
      <span class="mark big" aria-hidden="true" />
      <h1>What would you like to know?</h1>
      <p class="lead">
        Streams here outlive their connection, stop when told to, keep every word that arrived, and never
        claim a success that was none.
      </p>
      <ul class="tries">
        {TRIES.filter((one) => known.has(one.model)).map((one) => (
          <li key={one.title}>
            <button
              type="button"
              onClick={() => {
                chooseModel(one.model);
                suggestion.value = one.prompt;
              }}
            >
              <Icon name={one.icon} />
              <b>{one.title}</b>
              <span>{one.text}</span>
              <code>{one.model}</code>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
