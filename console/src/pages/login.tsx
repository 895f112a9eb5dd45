import { useState } from "preact/hooks";
import { keepToken, token } from "../api/token";
import { Lamp } from "../parts/lamp";

/** Asks for a token. It is kept in this tab only. */
export function Login({ enter }: { enter: () => Promise<void> }) {
  const [typed, setTyped] = useState("");
  const [refused, setRefused] = useState(token() !== null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!typed.trim()) return;
    keepToken(typed.trim());
    setTyped("");
    await enter();
    setRefused(true);
  };
  return (
    <main class="alone">
      <h1 class="brand">
        <Lamp />
        Lamplighter
      </h1>
      <form onSubmit={submit}>
        {refused && (
          <p class="problem" role="alert">
            The service does not take this token: it is wrong, has ended, or was revoked.
          </p>
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
