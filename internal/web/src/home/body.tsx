// The parts of Home that come after its figures: what runs, what went wrong, why tasks wait, and
// beside them how the last days went.
import { Weeks } from "./flow";
import { Since } from "./day";
import { WentWrong } from "./failures";
import { Runs } from "./running";
import { Why } from "./stalls";
import type { Wrong } from "./wrong";

export { WaitCard } from "./cards";

// Rest is what comes below what waits.
export function Rest(p: { wrong: Wrong; above: ReadonlySet<string> | undefined }) {
  return (
    <>
      <Runs />
      {p.above && <WentWrong of={p.wrong} above={p.above} />}
      <Why />
    </>
  );
}

// Beside is what one looks at beside that: how the last days went.
export function Beside() {
  return (
    <aside class="beside">
      <Weeks />
      <Since />
    </aside>
  );
}
