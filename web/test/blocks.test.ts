import { Marked } from "marked";
import { expect, test } from "vitest";
import { Blocks, codeOf, LONG_CHARS } from "../src/blocks";

function texts(blocks: Blocks): string[] {
  return blocks.settled.map((block) => block.text.trim());
}

function settledOf(source: string): string[] {
  const blocks = new Blocks();
  blocks.update(source, true);
  return texts(blocks);
}

test.each([
  ["paragraphs are blocks of their own", "one\n\ntwo\n\nthree", ["one", "two", "three"]],
  ["a loose list is one block", "- a\n\n- b\n\n  more\n\n- c\n\nend", ["- a\n\n- b\n\n  more\n\n- c", "end"]],
  ["a numbered list is one block", "1. a\n\n2. b\n\nend", ["1. a\n\n2. b", "end"]],
  ["code with blank lines is one block", "x\n\n```py\na\n\nb\n```\ny", ["x", "```py\na\n\nb\n```", "y"]],
  ["a fence begins a block without a blank line", "see:\n```\na\n```", ["see:", "```\na\n```"]],
  [
    "a fence inside an item belongs to it",
    "- a\n\n  ```\n  x\n\n  y\n  ```\n- b",
    ["- a\n\n  ```\n  x\n\n  y\n  ```\n- b"],
  ],
  [
    "a longer fence holds a shorter one",
    "````\n```\na\n```\n\nb\n````\n\nc",
    ["````\n```\na\n```\n\nb\n````", "c"],
  ],
  ["ticks in a line are no fence", "```a``` b\n\nc", ["```a``` b", "c"]],
  ["a table is one block", "| a |\n|---|\n| b |\n\nc", ["| a |\n|---|\n| b |", "c"]],
  ["a heading by underlining stays whole", "title\n===\n\nx", ["title\n===", "x"]],
])("%s", (_, source, expected) => {
  expect(settledOf(source)).toEqual(expected);
});

const SAMPLE = [
  "# Title\n\nSome *text*\nwith lines.\n\n1. one\n\n   more\n2. two\n\n",
  "> quote\n> more\n\n```js\nlet a = 1;\n\n// b\n```\nafter\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
  "- x\n  - y\n\n    ```\n    z\n    ```\n\n- w\n\n***\n\n~~~\ntilde\n~~~\n\nThe end.",
].join("");

const bare = (text: string) => text.replace(/\s/g, "");

test("however it is cut, what is settled never changes", () => {
  for (const step of [1, 2, 3, 7, 20]) {
    const blocks = new Blocks();
    let before: string[] = [];
    for (let at = 0; at <= SAMPLE.length; at += step) {
      blocks.update(SAMPLE.slice(0, at), false);
      const now = blocks.settled.map((block) => block.text);
      expect(now.slice(0, before.length)).toEqual(before);
      expect(bare(now.join("") + blocks.tail.text)).toBe(bare(SAMPLE.slice(0, at)));
      before = now;
    }
    blocks.update(SAMPLE, true);
    expect(texts(blocks)).toEqual(settledOf(SAMPLE));
  }
});

test("block by block it reads as it does in one piece", () => {
  const marked = new Marked({ gfm: true });
  const flat = (html: string) => html.replace(/\s+/g, " ").replace(/> </g, "><").trim();
  const blocks = new Blocks();
  blocks.update(SAMPLE, true);
  const pieces = blocks.settled.map((block) => marked.parse(block.text, { async: false })).join("");
  expect(flat(pieces)).toBe(flat(marked.parse(SAMPLE, { async: false })));
});

test("an item that may be coming keeps its list open", () => {
  const blocks = new Blocks();
  blocks.update("1. a\n\n2", false);
  expect(blocks.settled).toEqual([]);
  blocks.update("1. a\n\n2. b", false);
  expect(blocks.settled).toEqual([]);
  blocks.update("1. a\n\n2. b\n\nSo", false);
  expect(texts(blocks)).toEqual(["1. a\n\n2. b"]);
});

test("code that is still coming is known as code", () => {
  const blocks = new Blocks();
  blocks.update("```py\nprint(", false);
  expect(blocks.tail).toEqual({ text: "```py\nprint(", code: true });
  expect(codeOf(blocks.tail.text)).toEqual({ language: "py", code: "print(" });
});

test("a tail does not grow without end", () => {
  const blocks = new Blocks();
  let source = "";
  for (let n = 0; n < 4000; n++) {
    source += `word${n} `;
    blocks.update(source, false);
    expect(blocks.tail.text.length).toBeLessThan(LONG_CHARS + 100);
  }
  expect(blocks.settled.map((block) => block.text).join("") + blocks.tail.text).toBe(source);
});

test("another text in the same place begins anew", () => {
  const blocks = new Blocks();
  blocks.update("one\n\ntwo", false);
  blocks.update("other\n\nthing", true);
  expect(texts(blocks)).toEqual(["other", "thing"]);
});
