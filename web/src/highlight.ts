/** Colours for code, loaded when a block of code is there, one language at a time: all at once hold up the page. */

import type { HLJSApi, LanguageFn } from "highlight.js";
import { whenIdle } from "./idle";

/** More would hold up the page for longer than a frame or two. */
export const MOST_CHARS = 20_000;

type Load = () => Promise<{ default: LanguageFn }>;

const LOADS: Record<string, Load> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

/** What people write instead. */
const NAMES: Record<string, string> = {
  "c#": "csharp",
  "c++": "cpp",
  cs: "csharp",
  docker: "dockerfile",
  golang: "go",
  hs: "haskell",
  html: "xml",
  js: "javascript",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  md: "markdown",
  patch: "diff",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  yml: "yaml",
  zsh: "bash",
};

let core: Promise<HLJSApi> | null = null;

async function loaded(language: string, load: Load): Promise<HLJSApi> {
  core ??= import("highlight.js/lib/core").then((module) => module.default);
  const [hljs, grammar] = await Promise.all([core, load()]);
  if (!hljs.getLanguage(language)) hljs.registerLanguage(language, grammar.default);
  return hljs;
}

/** As HTML; null: it has no colours. */
export async function highlighted(code: string, name: string): Promise<string | null> {
  const language = NAMES[name.toLowerCase()] ?? name.toLowerCase();
  const load = LOADS[language];
  if (!load || code.length > MOST_CHARS) return null;
  const hljs = await loaded(language, load);
  await new Promise<void>(whenIdle);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** Colours all blocks of code inside `root` that have a language and are not coloured yet. */
export async function highlightIn(root: HTMLElement): Promise<void> {
  for (const block of root.querySelectorAll<HTMLElement>("pre > code[class^=language-]:not(.hljs)")) {
    const html = await highlighted(block.textContent ?? "", block.className.replace("language-", ""));
    if (html === null || !block.isConnected) continue;
    block.innerHTML = html;
    block.classList.add("hljs");
  }
}
