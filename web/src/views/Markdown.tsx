/** Markdown that may still be coming: what is settled is made once, only the tail is made again. */

import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Block, Blocks, codeOf } from "../blocks";
import { painter } from "../frame";
import { highlighted, highlightIn } from "../highlight";
import { blockHtml } from "../markdown";

/** So many blocks are one element: what stands above the last ones is not looked at again. */
const GROUP = 16;
/** So much more is made for a frame: what comes at once, as after a reload, takes several. */
const MOST_CHARS = 2000;

export function Markdown({ text, live }: { text: string; live: boolean }) {
  const ref = useRef<Blocks | null>(null);
  ref.current ??= new Blocks();
  const blocks = ref.current;
  const made = useRef(0);
  made.current = live ? Math.min(text.length, made.current + MOST_CHARS) : text.length;
  blocks.update(text.slice(0, made.current), !live);
  const [, setTurn] = useState(0);
  const more = useRef(() => setTurn((turn) => turn + 1));
  useLayoutEffect(() => {
    if (made.current < text.length) painter.askSoon(more.current);
  });
  const { settled, tail } = blocks;
  const all = tail.text.trim() ? [...settled, tail] : settled;
  const groups = [];
  for (let at = 0; at < all.length; at += GROUP) {
    const settledCount = Math.min(GROUP, settled.length - at);
    const last = live && at + GROUP >= all.length;
    groups.push(
      <Group key={at} blocks={all.slice(at, at + GROUP)} settledCount={settledCount} growing={last} />,
    );
  }
  return (
    <div class={live && !all.at(-1)?.code ? "md in-prose" : "md"} onClick={copyNested}>
      {groups}
    </div>
  );
}

interface GroupProps {
  blocks: Block[];
  settledCount: number;
  /** More may come to its end. */
  growing: boolean;
}

class Group extends Component<GroupProps> {
  override shouldComponentUpdate(next: GroupProps): boolean {
    const { blocks, settledCount, growing } = this.props;
    if (next.settledCount !== settledCount || next.growing !== growing) return true;
    return next.blocks.length !== blocks.length || next.blocks.some((block, n) => block !== blocks[n]);
  }

  override render({ blocks, settledCount, growing }: GroupProps) {
    return (
      <div class="group">
        {blocks.map((block, n) => (
          <BlockView
            key={n}
            text={block.text}
            code={block.code}
            open={n >= settledCount}
            growing={growing && n === blocks.length - 1}
          />
        ))}
      </div>
    );
  }
}

interface BlockProps {
  text: string;
  code: boolean;
  open: boolean;
  /** What comes next comes to its end: the caret is there. */
  growing: boolean;
}

class BlockView extends Component<BlockProps> {
  override shouldComponentUpdate(next: BlockProps): boolean {
    const { text, code, open, growing } = this.props;
    return next.text !== text || next.open !== open || next.code !== code || next.growing !== growing;
  }

  override render({ text, code, open, growing }: BlockProps) {
    return code ? <Code text={text} open={open} /> : <Prose text={text} open={open} growing={growing} />;
  }
}

function Prose({ text, open, growing }: Omit<BlockProps, "code">) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) void highlightIn(ref.current!);
  }, [open]);
  const html = useMemo(() => blockHtml(text, open), [text, open]);
  return (
    <div ref={ref} class={growing ? "block growing" : "block"} dangerouslySetInnerHTML={{ __html: html }} />
  );
}

/** So many lines are laid out together: a line that comes moves only the last ones. */
const LINES = 60;

function Code({ text, open }: { text: string; open: boolean }) {
  const { language, code } = codeOf(text);
  const [html, setHtml] = useState<string | null>(null);
  useEffect(() => {
    if (open || !language) return;
    let gone = false;
    void highlighted(code, language).then((made) => {
      if (!gone) setHtml(made);
    });
    return () => {
      gone = true;
    };
  }, [open, code, language]);
  return (
    <div class="code">
      <div class="code-head">
        <span>{language || "code"}</span>
        <CopyButton text={() => code} label="Copy code" />
      </div>
      <pre tabIndex={0}>
        {html !== null && !open ? (
          <code class="hljs" dangerouslySetInnerHTML={{ __html: html }} />
        ) : (
          <code>{chunks(code)}</code>
        )}
      </pre>
    </div>
  );
}

/** Text whose lines are kept: what has come is laid out once. */
export function chunks(text: string) {
  const lines = text.split("\n");
  if (lines.length <= LINES) return text;
  const found = [];
  for (let at = 0; at < lines.length; at += LINES) {
    const chunk = lines.slice(at, at + LINES).join("\n");
    found.push(
      <span key={at} class="chunk">
        {/* The last newline of a block is not shown: without it, a last line that is empty would not be. */}
        {at + LINES < lines.length ? `${chunk}\n` : chunk}
      </span>,
    );
  }
  return found;
}

export function CopyButton({ text, label = "Copy" }: { text(): string; label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="copy"
      aria-label={done ? "Copied" : label}
      onClick={async () => {
        await copyText(text());
        setDone(true);
        setTimeout(() => setDone(false), 1500);
      }}
    >
      {done ? "Copied" : "Copy"}
    </button>
  );
}

/** Also where the clipboard's own API is missing: it is only there on https and localhost. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Blocks of code inside lists and quotes are plain HTML. */
function copyNested(event: MouseEvent): void {
  const button = event.target as HTMLElement;
  if (!button.matches(".block .copy")) return;
  const code = button.closest(".code")?.querySelector("code")?.textContent ?? "";
  void copyText(code).then(() => {
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
}
