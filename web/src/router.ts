/** Where we are, in the address's fragment: the server has one page, under whatever path. */

import { signal } from "@preact/signals";

export type Route =
  | { at: "new" }
  | { at: "session"; id: string; messageId: string | null }
  | { at: "compare"; groupId: string | null };

export function parse(hash: string): Route {
  const [where, id, what, which] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (where === "s" && id) return { at: "session", id, messageId: what === "m" && which ? which : null };
  if (where === "compare") return { at: "compare", groupId: id || null };
  return { at: "new" };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const paths = {
  home: "#/",
  session: (id: string, messageId?: string) =>
    `#/s/${encodeURIComponent(id)}${messageId ? `/m/${encodeURIComponent(messageId)}` : ""}`,
  compare: (groupId?: string) => (groupId ? `#/compare/${encodeURIComponent(groupId)}` : "#/compare"),
};

export const route = signal<Route>({ at: "new" });

export function startRouter(): void {
  const read = () => {
    route.value = parse(location.hash);
  };
  window.addEventListener("hashchange", read);
  read();
}

/** At once: what is typed after it belongs there. */
export function go(path: string, replace = false): void {
  if (replace) history.replaceState(null, "", path);
  else location.hash = path;
  route.value = parse(path);
}
