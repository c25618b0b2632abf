/** The page's icons: strokes on a grid of 24. */

const PATHS = {
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  menu: "M4 7h16M4 12h16M4 17h16",
  dots: "M6 12h.01M12 12h.01M18 12h.01",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  retry: "M4 12a8 8 0 0 1 13.7-5.6L20 8.5M20 4v4.5h-4.5M20 12a8 8 0 0 1-13.7 5.6L4 15.5M4 20v-4.5h4.5",
  edit: "M4 20l1-4L16.5 4.5a2.1 2.1 0 0 1 3 3L8 19z",
  branch: "M7 4v10a4 4 0 0 0 4 4h2M7 8h4a6 6 0 0 0 6-4M17 15l3 3-3 3",
  forward: "M5 6l7 6-7 6zM13 6l7 6-7 6z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  close: "M6 6l12 12M18 6L6 18",
  down: "M6 9l6 6 6-6",
  left: "M15 6l-6 6 6 6",
  right: "M9 6l6 6-6 6",
  up: "M6 15l6-6 6 6",
  sliders: "M4 8h9M17 8h3M4 16h3M11 16h9M15 6v4M9 14v4",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  tool: "M14 6a4 4 0 0 1 5 5l-8.5 8.5a2 2 0 0 1-3-3L16 8M14 6l2 2",
  thought: "M12 4a7 7 0 0 1 4 12.7V19H8v-2.3A7 7 0 0 1 12 4zM9 22h6",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  pause: "M8 6v12M16 6v12",
  play: "M8 5l11 7-11 7z",
  columns: "M4 5h16v14H4zM12 5v14",
  expand: "M14 4h6v6M20 4l-7 7M10 20H4v-6M4 20l7-7",
  shrink: "M20 10h-6V4M14 10l6-6M4 14h6v6M10 14l-6 6",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
  out: "M14 5h5v5M19 5l-8 8M11 5H5v14h14v-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  key: "M14.5 4a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM10 13l-6 6v2h4v-2h2v-2l2-2",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  keyboard: "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 15h8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width={name === "dots" ? 2.6 : 1.8}
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} fill={name === "stop" ? "currentColor" : "none"} />
    </svg>
  );
}
