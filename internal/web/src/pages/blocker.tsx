// One blocker: the question of an agent, and the form that answers it.
import { blockerGet, type Blocker } from "../client.gen";
import { BlockerCard } from "../cards/blocker";
import { Who } from "../cards/who";
import { useOne } from "../list";
import type { PageProps } from "../route";
import { Coming, Head } from "../ui/parts";
import { Raw } from "../ui/raw";
import { words } from "../ui/status";
import { Time } from "../ui/time";

export default function BlockerPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<Blocker>(id, (signal) => blockerGet({ blockerId: id }, { signal }), { topic: "blockers", id });
  const b = one.value.value;
  return (
    <>
      <Head title={b ? "Blocker: " + words(b.kind) : "Blocker"} />
      {b ? (
        <>
          <ul class="cards">
            <BlockerCard of={b} />
          </ul>
          {b.closed_at && (
            <p>
              Closed <Time at={b.closed_at} />
              {b.closed_by && (
                <>
                  {" "}
                  by <Who of={b.closed_by} />
                </>
              )}
              .
            </p>
          )}
          <Raw call={blockerGet} input={{ blockerId: id }} of={b} />
        </>
      ) : (
        <Coming of={one} />
      )}
      <p>
        <a href="/ui/blockers">All blockers</a>
      </p>
    </>
  );
}
