import { useState } from "preact/hooks";
import { problemOf, type Refused } from "../api/client";
import { type Credential, isSomebodyElse, logIn } from "../api/login";
import type { Me } from "../api/session";
import { Lamp } from "../parts/lamp";
import { Text } from "../parts/text";

/** Asks for a token, and says why what was tried before is not taken. Nothing of it is kept. */
export function Login({ enter, why }: { enter: (me: Me) => void; why: Refused }) {
  const [typed, setTyped] = useState("");
  const [refused, setRefused] = useState<Refused>();
  const problem = refused ?? (why.code === "missing-token" ? undefined : why);
  const submit = async (event: Event) => {
    event.preventDefault();
    const token = typed.trim();
    if (!token) return;
    setTyped("");
    try {
      enter(await logIn({ token }));
    } catch (error) {
      setRefused(problemOf(error));
    }
  };
  return (
    <main class="alone">
      <Brand />
      <form onSubmit={submit}>
        {problem && (
          <div class="problem" role="alert">
            <p>{headline(problem)}</p>
            <p class="dim">
              <Text value={[problem.detail, problem.hint].filter(Boolean).join("; ")} />
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
          A key of the service, or what <code>lamplighter token create</code> has printed. It begins
          a session, and is not kept. <code>lamplighter token login</code> prints a link that logs
          you in.
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

/** Asks before the session of somebody else is ended. */
export function Replace({
  credential,
  why,
  enter,
  stay,
}: {
  credential: Credential;
  why: Refused;
  enter: (me: Me) => void;
  stay: (why?: Refused) => void;
}) {
  const replace = async () => {
    try {
      enter(await logIn(credential, true));
    } catch (error) {
      stay(problemOf(error));
    }
  };
  return (
    <main class="alone">
      <Brand />
      <div class="problem" role="alert">
        <p>You are logged in as somebody else.</p>
        <p class="dim">
          <Text value={why.detail} />
        </p>
      </div>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => stay()}>
          Stay logged in
        </button>
        <button type="button" onClick={() => void replace()}>
          Log in as the other
        </button>
      </div>
    </main>
  );
}

function Brand() {
  return (
    <h1 class="brand">
      <Lamp />
      Lamplighter
    </h1>
  );
}

function headline(why: Refused): string {
  if (why.code === "session-over") return "The session is over.";
  return isSomebodyElse(why)
    ? "You are logged in as somebody else."
    : "The service does not take this.";
}
