// The look that a person has chosen, kept in this browser for each of them.
import { effect, signal } from "@preact/signals";
import { me } from "./session";

export type Theme = "system" | "light" | "dark";
const key = () => "theme-" + (me.value?.user?.id ?? "");

export const theme = signal<Theme>("system");

export function setTheme(to: Theme) {
  localStorage.setItem(key(), to);
  localStorage.setItem("theme", to); // of the last one here, until it is known who looks
  theme.value = to;
}

export function start() {
  effect(() => { theme.value = (me.value ? localStorage.getItem(key()) : localStorage.getItem("theme")) as Theme | null ?? "system"; });
  effect(() => { if (theme.value === "system") delete document.documentElement.dataset["theme"]; else document.documentElement.dataset["theme"] = theme.value; });
}
