import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf, type Refused, whenUnauthorized } from "./api/client";
import { POLL } from "./api/data";
import { isSomebodyElse, logIn, logOut, takeCode, whoAmI } from "./api/login";
import { type Me, Session, type Terms, useMay, useMe, useSees } from "./api/session";
import { restart } from "./api/stream";
import { forgetAll } from "./lib/batches";
import { useKeyboard } from "./lib/keys";
import { go, useRoute } from "./lib/route";
import { mayLeave } from "./lib/stay";
import { PAGES, pageOf } from "./pages";
import { Login, Replace } from "./pages/login";
import { Frame } from "./parts/frame";
import { Help } from "./parts/help";
import { Page as PageFrame } from "./parts/panel";
import { Problem } from "./parts/problem";
import { Name } from "./parts/text";

type State =
  | { at: "starting" }
  | { at: "login"; why: Refused }
  | { at: "replace"; code: string; why: Refused }
  | { at: "refused"; why: Refused }
  | { at: "in"; me: Me };

/** The console: a login where one is needed, then the frame with the page of the address in it. */
export function App() {
  const [state, setState] = useState<State>({ at: "starting" });
  const show = useCallback((me: Me) => {
    setState({ at: "in", me });
    restart();
  }, []);
  const enter = useCallback(async () => {
    const code = takeCode();
    try {
      show(code === undefined ? await whoAmI() : await logIn({ code }));
    } catch (error) {
      const why = problemOf(error);
      if (code !== undefined && isSomebodyElse(why)) setState({ at: "replace", code, why });
      else if (code !== undefined && why.status === 401) {
        // Whoever follows an old link and is logged in goes on as before.
        whoAmI().then(show, () => setState({ at: "login", why }));
      } else setState({ at: why.status === 401 ? "login" : "refused", why });
    }
  }, []);
  useEffect(() => whenUnauthorized((why) => setState({ at: "login", why })), []);
  useEffect(() => void enter(), [enter]);
  useEffect(() => {
    // A link that is opened in a tab that shows the console does not load the page anew.
    const follow = () => location.hash.startsWith("#code=") && void enter();
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, [enter]);
  useEffect(() => {
    if (state.at !== "refused") return;
    const pause = Math.max(POLL, state.why.after * 1000);
    const timer = window.setTimeout(() => void enter(), pause);
    return () => window.clearTimeout(timer);
  }, [state, enter]);

  if (state.at === "login") return <Login enter={show} why={state.why} />;
  if (state.at === "replace") {
    const stay = (why?: Refused) => (why ? setState({ at: "login", why }) : void enter());
    const { code, why } = state;
    return <Replace credential={{ code }} why={why} enter={show} stay={stay} />;
  }
  if (state.at === "refused") {
    return (
      <main class="alone">
        <Problem problem={state.why} />
        <p class="dim">It is asked again every few seconds.</p>
        <button type="button" class="primary" onClick={() => void enter()}>
          Try again
        </button>
      </main>
    );
  }
  if (state.at === "starting") {
    return (
      <main class="alone">
        <p class="dim" role="status">
          one moment…
        </p>
      </main>
    );
  }
  const leave = async () => {
    if (!mayLeave()) return;
    forgetAll();
    await logOut().catch(() => undefined);
    void enter();
  };
  return (
    <Session.Provider value={state.me}>
      <Inside leave={() => void leave()} />
    </Session.Provider>
  );
}

function Inside({ leave }: { leave: () => void }) {
  const route = useRoute();
  const [helping, setHelping] = useState(false);
  const help = useCallback(() => setHelping(true), []);
  useKeyboard(PAGES, help);
  const where = route.parts.join("/");
  const main = useRef<HTMLElement>(null);
  const arrived = useRef(false);
  useEffect(() => {
    // Whoever goes to another page begins at its top, with the keyboard and the eyes.
    if (arrived.current) {
      main.current?.focus();
      scrollTo(0, 0);
    }
    arrived.current = true;
  }, [where]);
  const sees = useSees();
  const page = pageOf(route);
  useEffect(() => {
    // Whoever may not see the overview begins with what they may see.
    const first = PAGES.find(sees);
    if (where === "" && first && !sees(page)) go(`#/${first.path}`, { replace: true });
  }, [where]);
  const Page = page.show;
  return (
    <Frame route={route} help={help} leave={leave} main={main}>
      {sees(page) ? <Page key={where} route={route} /> : <Closed terms={page} />}
      {helping && <Help onClose={() => setHelping(false)} />}
    </Frame>
  );
}

function Closed({ terms }: { terms: Terms }) {
  const may = useMay();
  const { tenant } = useMe();
  return (
    <PageFrame title="Not for this token">
      {may(terms.scope) ? (
        <p>
          This page is about all tenants, and this token is only for the tenant{" "}
          <Name value={tenant ?? ""} />. Ask for a token that is for no single tenant.
        </p>
      ) : (
        <p>
          This page needs the scope <code>{terms.scope}</code>. Ask for a token that has it.
        </p>
      )}
    </PageFrame>
  );
}
