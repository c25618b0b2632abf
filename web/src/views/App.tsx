/** The frame around everything: the list, the view, and what is said about both. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { go, paths, route } from "../router";
import { opened } from "../session";
import { announcement, connection, me, overlays, sidebarOpen, toast } from "../state";
import { Chat, NewChat } from "./Chat";
import { Compare } from "./Compare";
import { Icon } from "./Icon";
import { Dialog } from "./Overlay";
import { Sidebar, searchField } from "./Sidebar";
import { SignIn } from "./SignIn";
import { TruthPlace } from "./TruthButton";

export function App() {
  const [keys, setKeys] = useState(false);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => shortcut(event, () => setKeys(true));
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  if (me.value === null) return <SignIn />;
  return (
    <div class="shell">
      <Sidebar />
      {sidebarOpen.value && (
        <button
          type="button"
          class="scrim"
          aria-label="Close the list"
          onClick={() => {
            sidebarOpen.value = false;
          }}
        />
      )}
      <View />
      <Connection />
      <Toast />
      <TruthPlace />
      <p class="sr" role="status">
        {announcement.value}
      </p>
      {keys && <Keys close={() => setKeys(false)} />}
    </div>
  );
}

function View() {
  const at = route.value;
  switch (at.at) {
    case "new":
      return <NewChat />;
    case "session":
      return <Chat key={at.id} id={at.id} />;
    case "compare":
      return <Compare groupId={at.groupId} />;
  }
}

function shortcut(event: KeyboardEvent, showKeys: () => void): void {
  const command = event.ctrlKey || event.metaKey;
  const writing = (event.target as HTMLElement).matches("input, textarea, select");
  if (event.isComposing || event.defaultPrevented) return;
  if (command && event.key.toLowerCase() === "k") {
    event.preventDefault();
    sidebarOpen.value = true;
    searchField.current?.focus();
    searchField.current?.select();
  } else if (command && event.shiftKey && event.key.toLowerCase() === "o") {
    event.preventDefault();
    go(paths.home);
  } else if (event.key === "Escape") onEscape();
  else if (event.key === "?" && !writing && !overlays.value) showKeys();
}

/** Only when nothing else is open. */
function onEscape(): void {
  if (overlays.value) return;
  if (sidebarOpen.value) sidebarOpen.value = false;
  else if (opened.value?.isBusy) void opened.value.stop();
}

function Connection() {
  const lost = connection.value === "reconnecting";
  // A moment without a connection is nothing to talk about.
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!lost) {
      setShown(false);
      return;
    }
    const timer = setTimeout(() => setShown(true), 400);
    return () => clearTimeout(timer);
  }, [lost]);
  return (
    <div class="connection" role="status">
      {shown && (
        <span>
          <span class="ripple" aria-hidden="true" />
          Reconnecting… What has come is kept; the rest is fetched when the server is back.
        </span>
      )}
    </div>
  );
}

function Toast() {
  const said = toast.value;
  return (
    <div class="toasts" role={said?.kind === "error" ? "alert" : "status"}>
      {said && (
        <div class={`toast ${said.kind}`}>
          {said.text}
          <button
            type="button"
            class="icon-button"
            aria-label="Dismiss"
            onClick={() => {
              toast.value = null;
            }}
          >
            <Icon name="close" size={15} />
          </button>
        </div>
      )}
    </div>
  );
}

const KEYS = [
  ["Enter", "Send; while an answer is coming, queue"],
  ["Ctrl Enter", "While an answer is coming: stop it, then send"],
  ["Shift Enter", "A new line"],
  ["Esc", "Stop the answer"],
  ["Ctrl K", "Search"],
  ["Ctrl Shift O", "New chat"],
  ["?", "These keys"],
];

function Keys({ close }: { close(): void }) {
  return (
    <Dialog title="Keyboard" close={close}>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
