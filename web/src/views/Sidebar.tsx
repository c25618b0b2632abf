/** All conversations, by day; what runs, what is unread; and a search through everything that was said. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { go, paths, route } from "../router";
import {
  active,
  fail,
  loadMore,
  me,
  moreSessions,
  refresh,
  refreshSoon,
  rename,
  sessions,
  sessionsLoaded,
  sidebarOpen,
} from "../state";
import { byDay } from "../when";
import type { Hit, Session } from "../wire";
import { Deleting } from "./Deleting";
import { Icon } from "./Icon";
import { Menu } from "./Overlay";

const query = signal("");
const hits = signal<Hit[] | null>(null);
/** So that the keyboard finds it from anywhere. */
export const searchField: { current: HTMLInputElement | null } = { current: null };

export function Sidebar() {
  return (
    <nav class={sidebarOpen.value ? "sidebar open" : "sidebar"} aria-label="Conversations">
      <div class="brand">
        <span class="mark" aria-hidden="true" />
        Headwater
        <button
          type="button"
          class="icon-button only-narrow"
          aria-label="Close the list"
          onClick={closeDrawer}
        >
          <Icon name="close" />
        </button>
      </div>
      <div class="side-actions">
        <a class="button wide" href={paths.home} onClick={closeDrawer} aria-keyshortcuts="Control+Shift+O">
          <Icon name="plus" /> New chat
        </a>
        <a class="button" href={paths.compare()} onClick={closeDrawer} title="Compare models side by side">
          <Icon name="columns" /> Compare
        </a>
      </div>
      <Search />
      <div class="side-list">{hits.value ? <Hits found={hits.value} /> : <List />}</div>
      {me.value?.key_id && (
        <footer class="side-foot">
          <Icon name="key" size={15} />
          <span>{me.value.owner}</span>
          <button
            type="button"
            class="button small"
            onClick={() => void api.logout().then(() => location.reload(), fail)}
          >
            Sign out
          </button>
        </footer>
      )}
    </nav>
  );
}

function closeDrawer(): void {
  sidebarOpen.value = false;
}

// ------------------------------------------------------------------------ search

function Search() {
  useEffect(() => {
    const q = query.value.trim();
    if (!q) {
      hits.value = null;
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        hits.value = await api.search(q, stop.signal);
      } catch (error) {
        if (!stop.signal.aborted) fail(error);
      }
    }, 150);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [query.value]);
  return (
    <div class="search" role="search">
      <Icon name="search" size={16} />
      <input
        type="search"
        placeholder="Search"
        aria-label="Search all conversations"
        aria-keyshortcuts="Control+K"
        value={query.value}
        ref={(input) => {
          searchField.current = input;
        }}
        onInput={(event) => {
          query.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape" && query.value) {
            event.stopPropagation();
            query.value = "";
          }
        }}
      />
      <kbd aria-hidden="true">Ctrl K</kbd>
    </div>
  );
}

function Hits({ found }: { found: Hit[] }) {
  if (!found.length) return <p class="side-note">Nothing has all of these words.</p>;
  return (
    <ul aria-label="Found">
      {found.map((hit) => (
        <li key={hit.message_id}>
          <a class="hit" href={paths.session(hit.session_id, hit.message_id)} onClick={closeDrawer}>
            <b>{hit.title ?? "Untitled"}</b>
            <span>{marked(hit.snippet, query.value)}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

function marked(text: string, q: string) {
  const words = q.match(/[\p{L}\p{N}_]+/gu) ?? [];
  if (!words.length) return text;
  return text
    .split(new RegExp(`(${words.join("|")})`, "giu"))
    .map((piece, n) => (n % 2 ? <mark key={`${n}${piece}`}>{piece}</mark> : piece));
}

// -------------------------------------------------------------------------- list

function List() {
  const all = sessions.value;
  if (!all.length)
    return <p class="side-note">{sessionsLoaded.value ? "What you talk about is kept here." : ""}</p>;
  return (
    <>
      {byDay(all, (session) => session.updated_at, new Date()).map(({ day, items }) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {items.map((session) => (
              <Entry key={session.id} session={session} />
            ))}
          </ul>
        </section>
      ))}
      {moreSessions.value && (
        <button type="button" class="button small more" onClick={() => void loadMore().catch(fail)}>
          Older
        </button>
      )}
    </>
  );
}

function Entry({ session }: { session: Session }) {
  const [renaming, setRenaming] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const here = route.value.at === "session" && route.value.id === session.id;
  const run = active.value.get(session.id);
  const unread = !here && !run && session.head_id !== null && session.head_id !== session.read_id;
  const title = session.title ?? "New conversation";
  const stop = () => {
    if (run) void api.stop(run.id).then(refreshSoon, fail);
  };
  if (renaming) return <Renaming session={session} close={() => setRenaming(false)} />;
  return (
    <li class={`entry ${here ? "here" : ""} ${unread ? "unread" : ""}`}>
      <a
        href={paths.session(session.id)}
        aria-current={here ? "page" : undefined}
        onClick={closeDrawer}
        title={title}
      >
        {run && <span class={run.status === "waiting" ? "dot waiting" : "dot"} />}
        <span class="entry-title">{title}</span>
        {run && <span class="sr">{run.status === "waiting" ? ", waits for you" : ", running"}</span>}
        {unread && <span class="sr">, unread</span>}
      </a>
      {run && (
        <button type="button" class="icon-button" aria-label={`Stop ${title}`} title="Stop" onClick={stop}>
          <Icon name="stop" size={14} />
        </button>
      )}
      <Menu
        label={`More for ${title}`}
        class="icon-button reveal"
        choices={[
          { label: "Rename", icon: "edit", act: () => setRenaming(true) },
          { label: "Export as Markdown", icon: "download", href: api.exportUrl(session.id, "md") },
          { label: "Export as JSON", icon: "download", href: api.exportUrl(session.id, "json") },
          { label: "Delete", icon: "trash", danger: true, act: () => setDeleting(true) },
        ]}
      >
        <Icon name="dots" size={16} />
      </Menu>
      {deleting && (
        <Deleting
          what="conversation"
          title={title}
          running={run !== undefined}
          remove={() => void remove(session, run?.id ?? null)}
          close={() => setDeleting(false)}
        />
      )}
    </li>
  );
}

function Renaming({ session, close }: { session: Session; close(): void }) {
  const [title, setTitle] = useState(session.title ?? "");
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current!.select(), []);
  const over = useRef(false);
  const end = async (keep: boolean) => {
    // Its removal takes the focus from it, which ends it once more.
    if (over.current) return;
    over.current = true;
    close();
    if (keep && title.trim() && title !== session.title) await rename(session.id, title.trim().slice(0, 300));
  };
  return (
    <li class="entry">
      <input
        ref={input}
        class="field"
        aria-label="New title"
        value={title}
        onInput={(event) => setTitle(event.currentTarget.value)}
        onBlur={() => void end(true)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.isComposing) void end(true);
          if (event.key === "Escape") {
            event.stopPropagation();
            void end(false);
          }
        }}
      />
    </li>
  );
}

async function remove(session: Session, runId: string | null): Promise<void> {
  const at = route.peek();
  if (at.at === "session" && at.id === session.id) go(paths.home, true);
  try {
    if (runId) await api.stop(runId);
    await api.deleteSession(session.id);
  } catch (error) {
    fail(error);
  }
  void refresh();
}
