/**
 * Splits Markdown that is still coming into blocks that can't change any more and a tail that can.
 *
 * Pure, and linear: every character is looked at once. Where it is not sure, it does not split: what is one block here
 * may be several to a Markdown parser, never the other way round (but for a tail of an absurd length).
 */

const FENCE = /^( *)(`{3,}|~{3,})(.*)$/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** A line that may yet become a list item. */
const BEGUN_ITEM = /^(?:[-*+]|\d{1,9}[.)]?)$/;
/** A tail that is longer is split at a line's end: to read it again for every frame would take too long. */
export const LONG_CHARS = 8000;

export interface Block {
  text: string;
  /** It is one fenced block of code, perhaps not closed yet. */
  code: boolean;
}

export class Blocks {
  readonly settled: Block[] = [];
  private source = "";
  /** Where the tail begins. */
  private from = 0;
  /** Where the line that is not looked at yet begins. */
  private line = 0;
  private fence: string | null = null;
  /** The fence is a block of its own, and not a part of a list's item. */
  private bare = false;
  private inList = false;
  /** Only blank lines since the last one that said something. */
  private blank = true;
  private ended = false;

  get tail(): Block {
    return { text: this.source.slice(this.from), code: this.fence !== null && this.bare };
  }

  get length(): number {
    return this.source.length;
  }

  /** All there is so far: what was given before, and perhaps more. */
  update(source: string, done: boolean): void {
    if (source.length < this.source.length || this.ended || !source.startsWith(this.source)) {
      if (this.ended && done && source === this.source) return;
      this.reset();
    }
    this.source = source;
    for (;;) {
      const end = source.indexOf("\n", this.line);
      if (end < 0) break;
      this.take(source.slice(this.line, end), end + 1);
    }
    const rest = source.slice(this.line);
    if (done) {
      if (rest) this.take(rest, source.length);
      this.settle(source.length);
      this.ended = true;
    } else if (rest && this.isBoundary(rest)) this.settle(this.line);
    else this.splitLong();
  }

  private reset(): void {
    this.settled.length = 0;
    this.source = "";
    this.from = this.line = 0;
    this.fence = null;
    this.bare = this.inList = this.ended = false;
    this.blank = true;
  }

  private take(line: string, next: number): void {
    const fence = FENCE.exec(line);
    if (this.fence !== null) {
      if (fence && closes(fence, this.fence)) {
        this.fence = null;
        if (this.bare) {
          this.settle(next, true);
          this.blank = true;
        }
      }
    } else if (fence && !(fence[2]!.startsWith("`") && fence[3]!.includes("`"))) {
      if (fence[1] === "") {
        this.settle(this.line);
        this.inList = false;
      }
      this.bare = fence[1] === "" && this.from === this.line;
      this.fence = fence[2]!;
      this.blank = false;
    } else if (line.trim() === "") this.blank = true;
    else {
      if (this.isBoundary(line)) {
        this.settle(this.line);
        this.inList = false;
      }
      if (!/^\s/.test(line)) this.inList = ITEM.test(line);
      this.blank = false;
    }
    this.line = next;
  }

  /** The line, of which more may come, is no part of what was before it. */
  private isBoundary(line: string): boolean {
    if (!this.blank || this.fence !== null || this.line === this.from || /^\s/.test(line)) return false;
    return !this.inList || !(ITEM.test(line) || BEGUN_ITEM.test(line));
  }

  private settle(end: number, code = false): void {
    const text = this.source.slice(this.from, end);
    if (text.trim() !== "") this.settled.push({ text, code: code || (this.fence !== null && this.bare) });
    this.from = end;
  }

  private splitLong(): void {
    if (this.source.length - this.from < LONG_CHARS || (this.fence !== null && this.bare)) return;
    const at = this.line > this.from ? this.line : this.source.lastIndexOf(" ") + 1;
    if (at > this.from && this.fence === null) {
      this.settle(at);
      this.line = Math.max(this.line, at);
    }
  }
}

function closes(fence: RegExpExecArray, open: string): boolean {
  return fence[2]!.startsWith(open) && fence[3]!.trim() === "";
}

/** A fenced block's language and its lines, without the fence. */
export function codeOf(text: string): { language: string; code: string } {
  const newline = text.indexOf("\n");
  const first = newline < 0 ? text : text.slice(0, newline);
  const open = FENCE.exec(first);
  const language = (open?.[3] ?? "").trim().split(/\s/)[0] ?? "";
  if (newline < 0) return { language, code: "" };
  const lines = text.slice(newline + 1).replace(/\n+$/, "");
  const at = lines.lastIndexOf("\n");
  const closing = FENCE.exec(lines.slice(at + 1));
  const code = open && closing && closes(closing, open[2]!) ? lines.slice(0, Math.max(0, at)) : lines;
  return { language, code };
}
