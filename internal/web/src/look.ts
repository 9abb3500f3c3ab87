// The look that a person has chosen, kept in this browser for each of them.
import { effect, signal, type Signal } from "@preact/signals";
import { me } from "./session";

const own = (name: string) => name + "-" + (me.value?.user?.id ?? "");

// Look is one of several words, which the stylesheet finds at the root of the page.
export class Look {
  readonly chosen: Signal<string>;
  constructor(
    private readonly name: string,
    private readonly usual: string,
  ) {
    this.chosen = signal(usual);
  }
  choose(to: string) {
    localStorage.setItem(own(this.name), to);
    localStorage.setItem(this.name, to); // of the last one here, until it is known who looks
    this.chosen.value = to;
  }
  follow() {
    effect(() => {
      this.chosen.value = localStorage.getItem(me.value ? own(this.name) : this.name) ?? this.usual;
    });
    effect(() => {
      if (this.chosen.value === this.usual) delete document.documentElement.dataset[this.name];
      else document.documentElement.dataset[this.name] = this.chosen.value;
    });
  }
}

export const theme = new Look("theme", "system"),
  density = new Look("rows", "roomy"),
  beside = new Look("details", "off");

export function start() {
  theme.follow();
  density.follow();
  beside.follow();
}
