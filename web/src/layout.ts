/** How many panes stand beside each other. Pure. */

/** A pane is read most easily when it is a little taller than wide. */
const WIDTH_TO_HEIGHT = 0.9;
const NARROWEST_PX = 205;

/** So that all of them fit into the space, each as large as can be, and little of it is left empty. */
export function columnsFor(panes: number, widthPx: number, heightPx: number): number {
  let best = 1;
  let most = 0;
  for (let columns = 1; columns <= panes; columns++) {
    const width = widthPx / columns;
    if (columns > 1 && width < NARROWEST_PX) break;
    const rows = Math.ceil(panes / columns);
    const worth = Math.min(width / WIDTH_TO_HEIGHT, heightPx / rows) * (panes / (rows * columns));
    if (worth > most) {
      most = worth;
      best = columns;
    }
  }
  return best;
}
