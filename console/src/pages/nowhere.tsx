import { Page } from "../parts/panel";

/** For addresses that lead nowhere. */
export function Nowhere() {
  return (
    <Page title="Page not found">
      <p>
        The address leads to no page. <a href="#/">The overview</a> is a good place to go on.
      </p>
    </Page>
  );
}
