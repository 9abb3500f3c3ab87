// One line that says what was done, for those who see and those who hear.
import { signal } from "@preact/signals";

const line = signal("");
let end = 0,
  told = 0;

// leave takes the line away with the page that it was about; one that was said as the page
// changed is about the new page.
export function leave() {
  if (Date.now() - told > 1000) line.value = "";
}

export function tell(text: string) {
  line.value = text;
  told = Date.now();
  clearTimeout(end);
  end = window.setTimeout(() => {
    line.value = "";
  }, 8000);
}

export function Toast() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {line.value && <div class="toast">{line.value}</div>}
    </div>
  );
}
