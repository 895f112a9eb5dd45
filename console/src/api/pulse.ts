// Asks whether service and store answer, where no stream tells: every few seconds while somebody looks.

import { address } from "./client";
import { service, store } from "./reach";
import { link } from "./stream";

const EVERY = 2_500;
/** The service answers this in less time, whatever its store does. */
const PATIENCE = 6_000;
let asking = false;

async function ask(): Promise<void> {
  if (asking || document.hidden || link() === "live") return;
  asking = true;
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address("readyz"), { cache: "no-store", signal });
    // Nothing else is known: what stands in front of a service may answer in its place.
    const isOurs = answer.headers.get("Content-Type")?.startsWith("application/problem+json");
    if (answer.ok || isOurs) service.note(true);
    if (answer.ok) store.note(true);
    else if (isOurs && ((await answer.json()) as { code?: string }).code === "not-ready")
      store.note(false);
  } catch (error) {
    // Something listens there and says nothing; that nothing does, other requests find out.
    if (error instanceof DOMException && error.name === "TimeoutError") service.note(false);
  } finally {
    asking = false;
  }
}

/** Begins to ask, for as long as the console is shown. */
export function keepPulse(): () => void {
  const timer = window.setInterval(() => void ask(), EVERY);
  return () => window.clearInterval(timer);
}
