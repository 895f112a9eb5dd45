// The dialog that is open. It stands beside the page, not in it: what a list shows may change and go
// while somebody decides about a part of it.

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Makes a dialog; what it is about is what it was when it was opened. */
export type Make = (close: () => void) => VNode;

type Listener = (dialog: VNode | undefined) => void;
const listeners = new Set<Listener>();
let current: VNode | undefined;

/** Opens a dialog in place of the one that is open. */
export function openDialog(make: Make): void {
  const mine: VNode = make(() => {
    if (current === mine) show(undefined);
  });
  show(mine);
}

/** Closes the dialog that is open, if there is one. */
export function closeDialog(): void {
  show(undefined);
}

function show(next: VNode | undefined): void {
  current = next;
  for (const listener of listeners) listener(next);
}

/** Gives the dialog that is open. Whoever goes elsewhere has left it. */
export function useDialog(): VNode | undefined {
  const [seen, setSeen] = useState(current);
  useEffect(() => {
    listeners.add(setSeen);
    setSeen(current);
    addEventListener("hashchange", closeDialog);
    return () => {
      listeners.delete(setSeen);
      removeEventListener("hashchange", closeDialog);
      closeDialog();
    };
  }, []);
  return seen;
}
