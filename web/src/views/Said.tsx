/** What somebody said; it can be said differently, which makes a branch. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import type { OpenSession, Pending } from "../session";
import { overlay } from "../state";
import type { MessageItem, Part } from "../wire";
import { Branches } from "./Branches";
import { Icon } from "./Icon";
import { copyText } from "./Markdown";

export function Said({ session, message }: { session: OpenSession; message: MessageItem }) {
  const [editing, setEditing] = useState(false);
  if (message.role === "system") return <p class="remark">{message.content}</p>;
  return (
    <article class="said" aria-label="You said" data-message={message.id}>
      {editing ? (
        <Editing session={session} message={message} close={() => setEditing(false)} />
      ) : (
        <>
          <Bubble content={message.content} parts={message.parts} />
          <footer class="actions">
            <Branches session={session} message={message} />
            <button
              type="button"
              class="icon-button"
              aria-label="Copy message"
              title="Copy"
              onClick={() => void copyText(message.content)}
            >
              <Icon name="copy" size={16} />
            </button>
            <button
              type="button"
              class="icon-button"
              aria-label="Edit and resend"
              title="Edit and resend"
              disabled={session.isBusy}
              onClick={() => setEditing(true)}
            >
              <Icon name="edit" size={16} />
            </button>
          </footer>
        </>
      )}
    </article>
  );
}

export function PendingSaid({ pending }: { pending: Pending }) {
  return (
    <article class="said pending" aria-label="You said">
      <Bubble content={pending.content} parts={pending.parts} />
    </article>
  );
}

function Bubble({ content, parts }: { content: string; parts: Part[] }) {
  return (
    <div class="bubble">
      <Pictures parts={parts} />
      {content && <div class="bubble-text">{content}</div>}
    </div>
  );
}

export function Pictures({ parts }: { parts: Part[] }) {
  const images = parts.filter((part) => part.type === "image");
  if (!images.length) return null;
  return (
    <div class="pictures">
      {images.map((part) =>
        part.blob || part.url?.startsWith("data:image/") ? (
          <img
            key={part.blob ?? part.url}
            src={part.blob ? api.blobUrl(part.blob) : part.url!}
            alt="Attached"
          />
        ) : (
          <a key={part.url} href={part.url ?? ""} target="_blank" rel="noopener noreferrer">
            {part.url}
          </a>
        ),
      )}
    </div>
  );
}

function Editing({ session, message, close }: { session: OpenSession; message: MessageItem; close(): void }) {
  const [text, setText] = useState(message.content);
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const release = overlay();
    area.current!.focus();
    area.current!.setSelectionRange(text.length, text.length);
    return release;
  }, []);
  const send = async () => {
    if (!text.trim() && !message.parts.length) return;
    close();
    await session.edit(message, text);
  };
  return (
    <form
      class="editing"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        ref={area}
        class="field grows"
        aria-label="Edit your message"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "Escape") close();
          else if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <div class="row end">
        <span class="hint">A new branch: what is there stays.</span>
        <button type="button" class="button small" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="button small primary">
          Resend
        </button>
      </div>
    </form>
  );
}
