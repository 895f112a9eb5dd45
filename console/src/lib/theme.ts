// Dark or light: as the system says, unless somebody has chosen.

export type Theme = "auto" | "dark" | "light";

const PLACE = "lamplighter.theme";
const ORDER: readonly Theme[] = ["auto", "dark", "light"];

/** Gives what was chosen. */
export function theme(): Theme {
  try {
    const found = localStorage.getItem(PLACE);
    return ORDER.find((each) => each === found) ?? "auto";
  } catch {
    return "auto";
  }
}

/** Shows the page as it was chosen. */
export function applyTheme(chosen: Theme = theme()): void {
  document.documentElement.dataset["theme"] = chosen;
}

/** Chooses the next of auto, dark and light, and gives it. */
export function nextTheme(): Theme {
  const chosen = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length] ?? "auto";
  try {
    localStorage.setItem(PLACE, chosen);
  } catch {
    // it holds for this page only
  }
  applyTheme(chosen);
  return chosen;
}
