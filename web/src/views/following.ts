/** A box that goes along with what comes to its end, unless the reader has scrolled away. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Following {
  box: RefObject<HTMLDivElement | null>;
  inner: RefObject<HTMLDivElement | null>;
  /** The reader is elsewhere. */
  away: boolean;
  onScroll(): void;
  /** Back to the end, and along with it. */
  follow(): void;
  /** Where it is, it stays. */
  leave(): void;
}

/** `nearPx`: so near the end counts as there. */
export function useFollowing(nearPx: number): Following {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const stuck = useRef(true);
  const top = useRef(0);
  const [away, setAway] = useState(false);
  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  // Whatever makes it longer: words, pictures, colours.
  useLayoutEffect(() => {
    const seen = new ResizeObserver(() => {
      if (stuck.current) toEnd();
    });
    seen.observe(inner.current!);
    seen.observe(box.current!);
    return () => seen.disconnect();
  }, []);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    const near = scrollHeight - scrollTop - clientHeight < nearPx;
    // Only who goes up leaves: what came meanwhile makes the end further away, too.
    if (near || scrollTop < top.current) stuck.current = near;
    top.current = scrollTop;
    setAway(!stuck.current);
  };
  const follow = () => {
    stuck.current = true;
    setAway(false);
    toEnd();
  };
  const leave = () => {
    stuck.current = false;
  };
  return { box, inner, away, onScroll, follow, leave };
}
