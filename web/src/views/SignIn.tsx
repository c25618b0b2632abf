/** Asked for where the server has keys. The key becomes a cookie that no script can read. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { loadMe } from "../state";

export function SignIn() {
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setWrong(null);
    try {
      await api.login(key.trim());
      await loadMe();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <span class="mark big" aria-hidden="true" />
        <h1>Headwater</h1>
        <p>This server has keys. Sign in with yours.</p>
        <label>
          Key
          <input
            class="field"
            type="password"
            autocomplete="current-password"
            required
            aria-invalid={wrong !== null}
            aria-describedby={wrong ? "wrong" : undefined}
            value={key}
            ref={(input) => {
              if (input && document.activeElement === document.body) input.focus();
            }}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        {wrong && (
          <p id="wrong" class="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button type="submit" class="button primary" disabled={busy || !key.trim()}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        <p class="hint">
          Whoever runs the server makes one: <code>headwater keys create NAME</code>
        </p>
      </form>
    </main>
  );
}
