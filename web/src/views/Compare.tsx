/** Several models side by side on one prompt. Loaded when it is first asked for. */

import { useEffect, useState } from "preact/hooks";
import { Head } from "./Chat";
import type * as Page from "./compare/ComparePage";

export function Compare({ groupId }: { groupId: string | null }) {
  const [page, setPage] = useState<typeof Page | null>(null);
  useEffect(() => {
    void import("./compare/ComparePage").then(setPage);
  }, []);
  if (!page)
    return (
      <main class="main">
        <Head title="Compare" />
      </main>
    );
  return groupId ? <page.ComparePage key={groupId} id={groupId} /> : <page.CompareStart />;
}
