// What requests of a session carry: proof that this page sent them, and a sign that somebody is here.
// The session itself is a cookie that no script can read.

/** So long after the last key or click somebody is taken to be here, in milliseconds. */
const PRESENT = 60_000;

let csrf: string | undefined;
let lastSeen = Date.now();

/** Keeps what changes of this session have to carry; undefined: there is no session. */
export function keepProof(value: string | undefined): void {
  csrf = value;
}

/** Gives the headers of a request; those that only read prove nothing. */
export function proof(method: string): Record<string, string> {
  const found: Record<string, string> = {};
  if (csrf === undefined) return found;
  if (method !== "GET") found["X-CSRF-Token"] = csrf;
  // What a page asks by itself keeps no session alive.
  if (Date.now() - lastSeen < PRESENT) found["X-User-Active"] = "1";
  return found;
}

for (const kind of ["pointerdown", "keydown", "wheel"]) {
  addEventListener(
    kind,
    () => {
      lastSeen = Date.now();
    },
    { capture: true, passive: true },
  );
}
