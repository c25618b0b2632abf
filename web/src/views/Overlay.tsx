/** Menus and dialogs: closed by Esc and by a click elsewhere, and back to where the focus was. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { overlay } from "../state";
import { Icon, type IconName } from "./Icon";

export interface Choice {
  label: string;
  icon?: IconName;
  danger?: boolean;
  disabled?: boolean;
  href?: string;
  act?(): void;
}

interface MenuProps {
  label: string;
  choices: Choice[];
  children: ComponentChildren;
  class?: string;
  /** Which edge of the button it lines up with. */
  side?: "left" | "right";
}

export function Menu({ label, choices, children, class: name = "icon-button", side = "right" }: MenuProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const close = (focus = true) => {
    setOpen(false);
    if (focus) button.current?.focus();
  };
  // Before anything more is typed.
  useLayoutEffect(() => {
    if (!open) return;
    place(list.current!, button.current!);
    list.current!.querySelector<HTMLElement>("[role=menuitem]:not([disabled])")?.focus();
    return dismissing(list.current!, button.current!, close);
  }, [open]);
  return (
    <span class="menu-place">
      <button
        type="button"
        ref={button}
        class={name}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={label}
        title={label}
        onClick={(event) => {
          event.preventDefault();
          setOpen(!open);
        }}
      >
        {children}
      </button>
      {open && (
        <div
          ref={list}
          class={`menu ${side}`}
          role="menu"
          aria-label={label}
          onKeyDown={(event) => roving(event, list.current!)}
        >
          {choices.map((choice) => (
            <MenuItem key={choice.label} choice={choice} done={() => close()} />
          ))}
        </div>
      )}
    </span>
  );
}

/** Below its button or above it, wherever there is more room inside of what scrolls; and no higher than that. */
function place(list: HTMLElement, button: HTMLElement): void {
  const around = (list.closest(".thread, .side-list") ?? document.body).getBoundingClientRect();
  const at = button.getBoundingClientRect();
  const below = around.bottom - at.bottom;
  const above = at.top - around.top;
  const up = above > below && list.offsetHeight > below;
  list.classList.toggle("up", up);
  list.style.maxHeight = `${Math.max(LEAST_PX, (up ? above : below) - 12)}px`;
}

const LEAST_PX = 180;

function MenuItem({ choice, done }: { choice: Choice; done(): void }) {
  const inner = (
    <>
      {choice.icon && <Icon name={choice.icon} size={16} />}
      {choice.label}
    </>
  );
  if (choice.href)
    return (
      <a role="menuitem" tabIndex={-1} href={choice.href} download onClick={done}>
        {inner}
      </a>
    );
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      class={choice.danger ? "danger" : ""}
      disabled={choice.disabled ?? false}
      onClick={(event) => {
        event.preventDefault();
        done();
        choice.act?.();
      }}
    >
      {inner}
    </button>
  );
}

/** Arrow keys, Home and End go through a menu's or a list's items. */
export function roving(event: KeyboardEvent, list: HTMLElement, role = "menuitem"): void {
  const items = [...list.querySelectorAll<HTMLElement>(`[role=${role}]:not([disabled])`)];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
  const next = to[event.key];
  if (next === undefined || !items.length) return;
  event.preventDefault();
  items[(next + items.length) % items.length]?.focus();
}

/** Until it is closed, Esc and clicks elsewhere close it. Gives back what undoes that. */
export function dismissing(
  inside: HTMLElement,
  button: HTMLElement,
  close: (focus?: boolean) => void,
): () => void {
  const release = overlay();
  const onDown = (event: PointerEvent) => {
    const target = event.target as Node;
    if (!inside.contains(target) && !button.contains(target)) close(false);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Tab" && inside.getAttribute("role") === "menu") close(false);
  };
  document.addEventListener("pointerdown", onDown, true);
  document.addEventListener("keydown", onKey, true);
  return () => {
    release();
    document.removeEventListener("pointerdown", onDown, true);
    document.removeEventListener("keydown", onKey, true);
  };
}

interface DialogProps {
  title: string;
  close(): void;
  children: ComponentChildren;
  class?: string;
}

/** A modal one: the browser keeps the focus inside, and gives it back. */
export function Dialog({ title, close, children, class: name }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  // Before anything more is typed.
  useLayoutEffect(() => {
    const release = overlay();
    const dialog = ref.current!;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      release();
      dialog.close();
      // The browser gives the focus back only while the dialog is still there.
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={name ? `dialog ${name}` : "dialog"}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) close();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
