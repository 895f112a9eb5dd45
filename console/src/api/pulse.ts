// Asks whether the store answers, where no stream tells: every few seconds while somebody looks.

import { address } from "./client";
import { store } from "./reach";
import { link } from "./stream";

const EVERY = 2_500;

async function ask(): Promise<void> {
  if (document.hidden || link() === "live") return;
  try {
    const answer = await fetch(address("readyz"), { cache: "no-store" });
    // Nothing else is known: what stands in front of a service may answer in its place.
    if (answer.ok) store.note(true);
    else if (answer.headers.get("Content-Type")?.startsWith("application/problem+json"))
      if (((await answer.json()) as { code?: string }).code === "not-ready") store.note(false);
  } catch {
    // The service itself does not answer; other requests find that out.
  }
}

/** Begins to ask, for as long as the console is shown. */
export function keepPulse(): () => void {
  const timer = window.setInterval(() => void ask(), EVERY);
  return () => window.clearInterval(timer);
}
