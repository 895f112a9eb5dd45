// Logging in and out. A token or a one-time code becomes a session, and is kept nowhere.

import { ask, type Refused } from "./client";
import { keepProof } from "./proof";
import type { Me } from "./schema";

/** What somebody logs in with. */
export type Credential = { token: string } | { code: string };

/** Asks the service who we are, and keeps what a session needs. */
export async function whoAmI(): Promise<Me> {
  return kept(await ask<Me>("v1/me"));
}

/** Begins a session; `replace` ends that of somebody else, which is refused without it. */
export async function logIn(credential: Credential, replace = false): Promise<Me> {
  return kept(await ask<Me>("v1/session", { method: "POST", body: { ...credential, replace } }));
}

/** Ends the session, for all windows and for the service. */
export async function logOut(): Promise<void> {
  await ask<Me>("v1/session", { method: "DELETE" });
  keepProof(undefined);
}

/** Whether the browser is logged in as somebody else. */
export function isSomebodyElse(why: Refused): boolean {
  return why.code === "signed-in";
}

/** Takes the code out of `#code=…`; it is good once, and then of no use to anybody. */
export function takeCode(): string | undefined {
  const found = /^#code=([^&]*)(?:&(.*))?$/.exec(location.hash);
  if (!found) return undefined;
  history.replaceState(null, "", `${location.pathname}${location.search}#${found[2] ?? "/"}`);
  return decodeURIComponent(found[1] ?? "").trim() || undefined;
}

function kept(me: Me): Me {
  keepProof(me.session?.csrf);
  return me;
}
