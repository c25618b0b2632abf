/** Several models side by side on one prompt. */

import { Head } from "./Chat";

export function Compare({ groupId }: { groupId: string | null }) {
  return (
    <main class="main">
      <Head title="Compare" />
      <div class="thread-place">
        <div class="thread centred">{groupId}</div>
      </div>
    </main>
  );
}
