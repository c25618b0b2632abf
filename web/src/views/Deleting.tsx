/** Asked before something is gone for good. */

import { Dialog } from "./Overlay";

interface Props {
  /** "conversation" or "comparison". */
  what: string;
  title: string;
  /** Something of it is still under way. */
  running: boolean;
  remove(): void;
  close(): void;
  /** What stays, if something does. */
  note?: string;
}

export function Deleting({ what, title, running, remove, close, note }: Props) {
  return (
    <Dialog title={`Delete this ${what}?`} close={close}>
      <p>
        <b>{title}</b> and everything in it will be gone, on every device
        {running ? ". What is being answered is stopped" : ""}. {note}
      </p>
      <div class="row end">
        <button type="button" class="button" onClick={close}>
          Keep it
        </button>
        <button
          type="button"
          class="button danger"
          onClick={() => {
            close();
            remove();
          }}
        >
          Delete
        </button>
      </div>
    </Dialog>
  );
}
