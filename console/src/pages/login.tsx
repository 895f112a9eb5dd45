import { useState } from "preact/hooks";
import type { Refused } from "../api/client";
import { keepToken, token } from "../api/token";
import { Lamp } from "../parts/lamp";
import { Text } from "../parts/text";

/** Asks for a token, and says why the one before is not taken. It is kept in this tab only. */
export function Login({ enter, why }: { enter: () => Promise<void>; why: Refused }) {
  const [typed, setTyped] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!typed.trim()) return;
    keepToken(typed.trim());
    setTyped("");
    await enter();
  };
  return (
    <main class="alone">
      <h1 class="brand">
        <Lamp />
        Lamplighter
      </h1>
      <form onSubmit={submit}>
        {token() !== null && (
          <div class="problem" role="alert">
            <p>The service does not take this token.</p>
            <p class="dim">
              <Text value={[why.detail, why.hint].filter(Boolean).join("; ")} />
            </p>
          </div>
        )}
        <label class="field">
          Token
          <input
            type="password"
            autocomplete="current-password"
            autofocus
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <p class="dim">
          A key of the service, or what <code>lamplighter token create</code> has printed. It is
          kept in this tab only.
        </p>
        <div>
          <button type="submit" class="primary">
            Log in
          </button>
        </div>
      </form>
    </main>
  );
}
