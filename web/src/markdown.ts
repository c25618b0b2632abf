/**
 * A block of Markdown as safe HTML.
 *
 * What a model says is not trusted: HTML in it is shown as text, but for a few tags that only set type; addresses are
 * links alone, and pictures from elsewhere become links, so that nothing is loaded by showing a message. DOMPurify has
 * the last word, with a list of what may be there; the page's CSP stands behind it.
 */

import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import remend from "remend";
import { whenIdle } from "./idle";

const PLAIN_TAGS = /^<\/?(?:b|i|em|strong|s|u|sub|sup|kbd|mark|small|br|hr|p|ul|ol|li)\s*\/?>$/i;
const LINK = /^(?:https?:|mailto:|#)/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,/i;

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  renderer: {
    html({ text }: Tokens.HTML | Tokens.Tag): string {
      return PLAIN_TAGS.test(text.trim()) ? text : escaped(text);
    },
    image({ href, text }: Tokens.Image): string {
      const alt = escaped(text || "image");
      if (PICTURE.test(href)) return `<img src="${escaped(href)}" alt="${alt}">`;
      return LINK.test(href) ? link(href, `${alt} ↗`) : alt;
    },
    link({ href, tokens }: Tokens.Link): string {
      const inner = this.parser.parseInline(tokens);
      return LINK.test(href) ? link(href, inner) : inner;
    },
    code({ text, lang }: Tokens.Code): string {
      return codeHtml(text, (lang ?? "").split(/\s/)[0] ?? "");
    },
    table(token: Tokens.Table): string {
      const row = (cells: string[]) => `<tr>${cells.join("")}</tr>`;
      const cell = (tag: string, one: Tokens.TableCell) =>
        `<${tag}${one.align ? ` align="${one.align}"` : ""}>${this.parser.parseInline(one.tokens)}</${tag}>`;
      const head = row(token.header.map((one) => cell("th", one)));
      const rows = token.rows.map((cells) => row(cells.map((one) => cell("td", one))));
      // It may be wider than the message; the keyboard has to reach what is scrolled.
      return `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead>${head}</thead><tbody>${rows.join("")}</tbody></table></div>`;
    },
    listitem(item: Tokens.ListItem): string {
      return `<li${item.task ? ' class="task"' : ""}>${this.parser.parse(item.tokens)}</li>`;
    },
    checkbox({ checked }: Tokens.Checkbox): string {
      return checked ? "☑ " : "☐ ";
    },
  },
});

function link(href: string, inner: string): string {
  return `<a href="${escaped(href)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>`;
}

function codeHtml(code: string, language: string): string {
  const name = /^[\w+#.-]{1,30}$/.test(language) ? language : "";
  return (
    `<div class="code"><div class="code-head"><span>${escaped(name || "code")}</span>` +
    `<button type="button" class="copy" aria-label="Copy code">Copy</button></div>` +
    `<pre tabindex="0"><code${name ? ` class="language-${escaped(name)}"` : ""}>${escaped(code)}</code></pre></div>`
  );
}

const ALLOWED = {
  ALLOWED_TAGS:
    "a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre s small span strong sub sup table tbody td th thead tr u ul".split(
      " ",
    ),
  ALLOWED_ATTR: "align alt aria-label class href rel role src start tabindex target type".split(" "),
  // All but two are no addresses: the rule for those does not hold for them.
  ADD_URI_SAFE_ATTR: "align aria-label rel start tabindex target type".split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#|data:image\/(?:png|jpeg|gif|webp);base64,)/i,
};

export function blockHtml(text: string, open: boolean): string {
  const whole = open ? remend(text, { linkMode: "text-only" }) : text;
  return DOMPurify.sanitize(marked.parse(whole, { async: false }), ALLOWED);
}

/** One of each kind. */
const SAMPLES = [
  "Some *words* and **more**, `code`, [a link](https://example.com) and <b>tags</b>.",
  "## A head\n\n> a quote",
  "1. one\n2. two\n   - three",
  "| a | b |\n|---|--:|\n| c | d |",
  "- in\n  ```py\n  code\n  ```",
];

/** Reads something of each kind while there is time: the first time takes ten times as long as any later one. */
export function warmUp(): void {
  for (const sample of SAMPLES) whenIdle(() => void blockHtml(sample, true));
}
