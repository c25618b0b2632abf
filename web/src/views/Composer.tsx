/** Where one writes. The draft is kept for each conversation; Enter sends, unless a word is still being composed. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { type Draft, keepDraft, readDraft } from "../drafts";
import { fail } from "../state";
import type { ImageIn, Multitask } from "../wire";
import { Icon } from "./Icon";

export interface Composed {
  content: string;
  parts: ImageIn[];
  multitask: Multitask;
}

interface Props {
  /** A session's id, "new", or another name for what is being written. */
  place: string;
  busy: boolean;
  stopping?: boolean;
  placeholder?: string;
  /** While busy, what is written can wait for its turn, or take it. */
  canQueue?: boolean;
  /** False: it was not taken, and the draft comes back. */
  send(said: Composed): Promise<boolean>;
  stop?(): void;
  stopLabel?: string;
  /** Beside the buttons, e.g. the choice of a model. */
  children?: preact.ComponentChildren;
}

/** Puts a text into the composer that is on the page, e.g. a prompt to try. */
export const suggestion = signal<string | null>(null);

export function Composer(props: Props) {
  const { place, busy, stopping = false, canQueue = false, send, stop } = props;
  const [draft, setDraft] = useState<Draft>(() => readDraft(place));
  const [uploading, setUploading] = useState(0);
  const [sending, setSending] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const shown = useRef(place);

  if (shown.current !== place) {
    shown.current = place;
    setDraft(readDraft(place));
  }
  const change = (next: Draft) => {
    setDraft(next);
    keepDraft(place, next);
  };
  useEffect(() => {
    if (!matchMedia("(pointer: coarse)").matches) area.current?.focus();
  }, [place]);
  useEffect(
    () =>
      suggestion.subscribe((text) => {
        if (text === null) return;
        suggestion.value = null;
        change({ text, images: [] });
        area.current?.focus();
      }),
    [place],
  );

  const empty = !draft.text.trim() && !draft.images.length;
  // In a conversation, one message may follow the other; what is only made by the first has to be there before.
  const closed = sending && !canQueue;
  const submit = async (multitask: Multitask) => {
    if (empty || closed || uploading) return;
    const sent = draft;
    change({ text: "", images: [] });
    setSending(true);
    // At once: later, it may be somewhere else.
    area.current?.focus();
    const taken = await send({ content: sent.text, parts: sent.images, multitask });
    setSending(false);
    // Unless something new was written meanwhile.
    if (!taken && !readDraft(place).text) change(sent);
  };
  const attach = async (given: Iterable<File>) => {
    for (const file of given) {
      if (!file.type.startsWith("image/")) continue;
      setUploading((n) => n + 1);
      try {
        const { hash } = await api.putBlob(file);
        const now = readDraft(place);
        change({ ...now, images: [...now.images, { type: "image", blob: hash }] });
      } catch (error) {
        fail(error);
      } finally {
        setUploading((n) => n - 1);
      }
    }
  };
  // Anywhere: what is dropped beside the composer would else be opened by the browser, in place of the page.
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      over(event);
      void attach(event.dataTransfer?.files ?? []);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
    };
  }, [place]);
  const onKeyDown = (event: KeyboardEvent) => {
    // 229: what some browsers say instead of `isComposing`.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!busy) void submit("reject");
    else if (canQueue) void submit(event.metaKey || event.ctrlKey ? "interrupt" : "queue");
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(busy ? "queue" : "reject");
      }}
    >
      {(draft.images.length > 0 || uploading > 0) && (
        <div class="attached">
          {draft.images.map((image, n) => (
            <span class="thumb" key={image.blob}>
              <img src={api.blobUrl(image.blob)} alt={`Attachment ${n + 1}`} />
              <button
                type="button"
                aria-label={`Remove attachment ${n + 1}`}
                onClick={() => change({ ...draft, images: draft.images.filter((one) => one !== image) })}
              >
                <Icon name="close" size={14} />
              </button>
            </span>
          ))}
          {uploading > 0 && <span class="thumb loading" role="status" aria-label="Uploading" />}
        </div>
      )}
      <textarea
        ref={area}
        class="grows"
        rows={1}
        placeholder={props.placeholder ?? (busy && canQueue ? "Write the next message…" : "Say something…")}
        aria-label="Message"
        value={draft.text}
        onInput={(event) => change({ ...draft, text: event.currentTarget.value })}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (!pasted.length) return;
          event.preventDefault();
          void attach(pasted);
        }}
      />
      <div class="composer-row">
        <button
          type="button"
          class="icon-button"
          aria-label="Attach an image"
          title="Attach an image (or paste, or drop it)"
          onClick={() => files.current!.click()}
        >
          <Icon name="image" />
        </button>
        <input
          ref={files}
          type="file"
          accept="image/png,image/jpeg,image/gif,image/webp"
          multiple
          hidden
          onChange={(event) => {
            void attach(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        {props.children}
        <span class="spacer" />
        {busy && canQueue && !empty && (
          <>
            <button
              type="button"
              class="button small"
              onClick={() => void submit("interrupt")}
              title="Stop the answer, then send (Ctrl+Enter)"
            >
              Interrupt
            </button>
            <button type="submit" class="button small primary" title="Send when the answer is done (Enter)">
              Queue
            </button>
          </>
        )}
        {busy && stop && (
          <button
            type="button"
            class="round stop"
            aria-label={stopping ? "Stopping" : (props.stopLabel ?? "Stop")}
            title="Stop (Esc)"
            disabled={stopping}
            onClick={stop}
          >
            <Icon name="stop" />
          </button>
        )}
        {!busy && (
          <button
            type="submit"
            class="round send"
            aria-label="Send"
            title="Send (Enter)"
            disabled={empty || closed || uploading > 0}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}
