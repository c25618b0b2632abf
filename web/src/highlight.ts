/** Colours for code, loaded when the first block of code is there: it is more than half of all script. */

import type { HLJSApi } from "highlight.js";

/** More would hold up the page for longer than a frame or two. */
export const MOST_CHARS = 20_000;

let loading: Promise<HLJSApi> | null = null;

export function highlighter(): Promise<HLJSApi> {
  loading ??= import("highlight.js/lib/common").then((module) => module.default);
  return loading;
}

/** Colours all blocks of code inside `root` that have a language and are not coloured yet. */
export async function highlightIn(root: HTMLElement): Promise<void> {
  const blocks = root.querySelectorAll<HTMLElement>("pre > code[class^=language-]:not(.hljs)");
  if (!blocks.length) return;
  const hljs = await highlighter();
  for (const block of blocks) {
    const language = block.className.replace("language-", "");
    const text = block.textContent ?? "";
    if (!hljs.getLanguage(language) || text.length > MOST_CHARS || !block.isConnected) continue;
    block.innerHTML = hljs.highlight(text, { language, ignoreIllegals: true }).value;
    block.classList.add("hljs");
  }
}
