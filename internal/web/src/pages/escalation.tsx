// One escalation: what it is about, and the note that ends it.
import { escalationGet, type Escalation } from "../client.gen";
import { EscalationCard } from "../cards/escalation";
import { useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Coming, Head } from "../ui/parts";
import { Raw } from "../ui/raw";

export default function EscalationPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<Escalation>(id, (signal) => escalationGet({ id }, { signal }), { topic: "escalations", id });
  const e = one.value.value;
  return (
    <>
      <Head title={e ? inert(e.title) : "Escalation"} />
      {e ? (
        <>
          <ul class="cards">
            <EscalationCard of={e} done={() => void one.load()} />
          </ul>
          <Raw call={escalationGet} input={{ id }} of={e} />
        </>
      ) : (
        <Coming of={one} />
      )}
      <p>
        <a href="/ui/escalations">All escalations</a>
      </p>
    </>
  );
}
