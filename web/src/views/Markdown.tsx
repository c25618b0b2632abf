/** Markdown that may still be coming: what is settled is made once, only the tail is made again. */

import { Component } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Blocks, codeOf } from "../blocks";
import { highlighted, highlightIn } from "../highlight";
import { blockHtml } from "../markdown";

export function Markdown({ text, live }: { text: string; live: boolean }) {
  const ref = useRef<Blocks | null>(null);
  ref.current ??= new Blocks();
  const blocks = ref.current;
  blocks.update(text, !live);
  const tail = blocks.tail;
  const all = tail.text.trim() ? [...blocks.settled, tail] : blocks.settled;
  return (
    <div class={live && !all.at(-1)?.code ? "md growing" : "md"} onClick={copyNested}>
      {all.map((block, n) => (
        <BlockView key={n} text={block.text} code={block.code} open={n >= blocks.settled.length} />
      ))}
    </div>
  );
}

interface BlockProps {
  text: string;
  code: boolean;
  open: boolean;
}

class BlockView extends Component<BlockProps> {
  override shouldComponentUpdate(next: BlockProps): boolean {
    return next.text !== this.props.text || next.open !== this.props.open || next.code !== this.props.code;
  }

  override render({ text, code, open }: BlockProps) {
    return code ? <Code text={text} open={open} /> : <Prose text={text} open={open} />;
  }
}

function Prose({ text, open }: { text: string; open: boolean }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) void highlightIn(ref.current!);
  }, [open]);
  return <div ref={ref} class="block" dangerouslySetInnerHTML={{ __html: blockHtml(text, open) }} />;
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
          <code>{chunks(code).map((chunk) => chunk)}</code>
        )}
      </pre>
    </div>
  );
}

function chunks(code: string) {
  const lines = code.split("\n");
  if (lines.length <= LINES) return [code];
  const found = [];
  for (let at = 0; at < lines.length; at += LINES) {
    found.push(
      <span key={at} class="chunk">
        {lines.slice(at, at + LINES).join("\n")}
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
