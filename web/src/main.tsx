/** Where the page begins. */

import { render } from "preact";
import { warmUp } from "./markdown";
import { startRouter } from "./router";
import { start } from "./state";
import { App } from "./views/App";

startRouter();
start();
const root = document.getElementById("app")!;
// What was shown before the script came is not ours to go on from.
root.replaceChildren();
render(<App />, root);
warmUp();
