import { useSees } from "../api/session";
import { ALWAYS, pageShortcuts } from "../lib/keys";
import { PAGES } from "../pages";
import { Dialog } from "./dialog";

/** What the keyboard can do. */
export function Help({ onClose }: { onClose: () => void }) {
  const own = pageShortcuts();
  const places = PAGES.filter(useSees()).map(({ key, name }) => ({
    keys: `g ${key}`,
    what: `go to ${name.toLowerCase()}`,
  }));
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      {own.length > 0 && <Keys title="On this page" keys={own} />}
      <Keys title="Everywhere" keys={[...places, ...ALWAYS]} />
    </Dialog>
  );
}

function Keys({ title, keys }: { title: string; keys: readonly { keys: string; what: string }[] }) {
  return (
    <>
      <h3>{title}</h3>
      <dl class="keys">
        {keys.map(({ keys, what }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
