import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { problemOf, type Refused } from "../api/client";
import { type Scope, useMay } from "../api/session";
import { type Shortcut, useShortcuts } from "../lib/keys";
import { Dialog } from "./dialog";
import { Problem } from "./problem";

interface ActProps {
  /** What the button says. */
  label: string;
  /** What is about to be done, in words. */
  title: string;
  /** What the button that does it says; the label if left out. */
  verb?: string;
  scope: Scope;
  danger?: boolean;
  primary?: boolean;
  /** Whether it makes no sense at present. */
  disabled?: boolean;
  /** A key that opens it. */
  hotkey?: string;
  /** Whether a reason can be given. */
  reason?: boolean;
  /** More fields, or an explanation. */
  children?: ComponentChildren;
  /** Does it. What it throws is shown, and the dialog stays. */
  act: (reason: string) => Promise<void>;
}

const NONE: readonly Shortcut[] = [];

/** A button that asks once more, takes a reason, does something and says what went wrong. */
export function Act(props: ActProps) {
  const [open, setOpen] = useState(false);
  const may = useMay()(props.scope);
  const can = may && !props.disabled;
  useShortcuts(
    can && props.hotkey
      ? [{ keys: props.hotkey, what: props.label, do: () => setOpen(true) }]
      : NONE,
  );
  return (
    <>
      <button
        type="button"
        class={props.danger ? "danger" : props.primary ? "primary" : undefined}
        disabled={!can}
        title={may ? undefined : `needs the scope ${props.scope}`}
        onClick={() => setOpen(true)}
      >
        {props.label}
      </button>
      {open && <ActDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

/** The dialog of `Act`, for those who open it in another way. */
export function ActDialog({
  label,
  title,
  verb = label,
  danger = false,
  reason = true,
  children,
  act,
  onClose,
}: Omit<ActProps, "scope"> & { onClose: () => void }) {
  const [why, setWhy] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Refused>();
  const alive = useRef(true);
  const close = () => {
    alive.current = false;
    onClose();
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await act(why.trim());
      close();
    } catch (error) {
      if (alive.current) setProblem(problemOf(error));
    } finally {
      if (alive.current) setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={close}>
      <form onSubmit={submit}>
        {children}
        {reason && (
          <label class="field">
            Reason
            <input
              value={why}
              maxLength={1000}
              placeholder="kept with it, for others to see"
              onInput={(event) => setWhy(event.currentTarget.value)}
            />
          </label>
        )}
        {problem && <Problem problem={problem} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button
            type="submit"
            class={danger ? "danger" : "primary"}
            disabled={busy}
            autofocus={!danger}
          >
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
