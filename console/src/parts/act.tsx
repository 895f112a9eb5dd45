import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { problemOf, type Refused } from "../api/client";
import { type Scope, useMay } from "../api/session";
import { type Make, openDialog } from "../lib/dialogs";
import { type Shortcut, useShortcuts } from "../lib/keys";
import { Dialog } from "./dialog";
import { Problem } from "./problem";

interface OpenerProps {
  /** What the button says. */
  label: string;
  scope: Scope;
  danger?: boolean | undefined;
  primary?: boolean | undefined;
  /** Whether it makes no sense at present. */
  disabled?: boolean | undefined;
  /** What it does, for those who rest on it. */
  hint?: string | undefined;
  /** A key that opens it. */
  hotkey?: string | undefined;
  /** Makes the dialog. */
  dialog: Make;
}

const NONE: readonly Shortcut[] = [];

/** A button that opens a dialog, for those who may do what it asks about. */
export function Opener(props: OpenerProps) {
  const { label, scope, danger, primary, disabled, hint, hotkey, dialog } = props;
  const may = useMay()(scope);
  const can = may && !disabled;
  const open = () => openDialog(dialog);
  useShortcuts(can && hotkey ? [{ keys: hotkey, what: label, do: open }] : NONE);
  return (
    <button
      type="button"
      class={danger ? "danger" : primary ? "primary" : undefined}
      disabled={!can}
      title={may ? hint : `needs the scope ${scope}`}
      onClick={open}
    >
      {label}
    </button>
  );
}

interface AskProps {
  /** What the button that opens it says. */
  label: string;
  /** What is about to be done, in words. */
  title: string;
  /** What the button that does it says; the label if left out. */
  verb?: string;
  danger?: boolean;
  /** Where the reason is kept. */
  kept?: string;
  /** An explanation, or more fields: a component that keeps what is typed. */
  children?: ComponentChildren;
  /** Does it. What it throws is shown, and the dialog stays. */
  act: (reason: string) => Promise<void>;
}

type ActProps = AskProps & Omit<OpenerProps, "dialog">;

/** A button that asks once more, takes a reason, does something and says what went wrong. */
export function Act(props: ActProps) {
  return <Opener {...props} dialog={(close) => <ActDialog {...props} onClose={close} />} />;
}

/** The dialog of `Act`, for those who open it in another way. */
export function ActDialog({
  label,
  title,
  verb = label,
  danger = false,
  kept = "kept with it, for others to see",
  children,
  act,
  onClose,
}: AskProps & { onClose: () => void }) {
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
    if (busy) return;
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
      <form onSubmit={submit} onKeyDown={deliberately}>
        {children}
        <label class="field">
          Reason
          <input
            autofocus
            value={why}
            maxLength={1000}
            placeholder={kept}
            onInput={(event) => setWhy(event.currentTarget.value)}
          />
        </label>
        {problem && <Problem problem={problem} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button
            type="submit"
            class={danger ? "danger" : "primary"}
            disabled={busy}
            title="Ctrl Enter"
          >
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Whoever ends a text with Enter has not decided yet: only Enter with Ctrl does it. */
function deliberately(event: KeyboardEvent): void {
  if (event.key !== "Enter" || event.isComposing) return;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    (event.currentTarget as HTMLFormElement).requestSubmit();
  } else if (event.target instanceof HTMLInputElement) event.preventDefault();
}
