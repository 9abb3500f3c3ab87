// One line that says what was done, for those who see and those who hear.
import { signal } from "@preact/signals";

const line = signal("");
let end = 0;

export function tell(text: string) {
  line.value = text;
  clearTimeout(end);
  end = window.setTimeout(() => { line.value = ""; }, 8000);
}

export function Toast() {
  return <div class="toast" role="status" aria-live="polite">{line.value}</div>;
}
