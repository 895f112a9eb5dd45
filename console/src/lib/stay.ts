// What lives in this page only: whoever reloads or closes it loses it, and is asked first.

let count = 0;

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

const LOST =
  "What runs in the background of this page stops, and what is not saved is lost. Log out?";

/** Asks whoever logs out, if something would be lost; tells whether they may. */
export function mayLeave(): boolean {
  return count === 0 || confirm(LOST);
}

/** Asks whoever wants to leave, until what is given back is called. */
export function stay(): () => void {
  if (count++ === 0) addEventListener("beforeunload", ask);
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    if (--count === 0) removeEventListener("beforeunload", ask);
  };
}
