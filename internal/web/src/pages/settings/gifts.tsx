// Gifts to open source: what the organisation gives, and what its repositories were given.
import { useState } from "preact/hooks";
import {
  donationCancel,
  donationCreate,
  donationDecline,
  donationList,
  donationReceived,
  donationSetModel,
  type Donation,
  type DonationModel,
  type ReceivedDonation,
} from "../../client.gen";
import { Used, whats } from "../../cards/gift";
import { Give, useGiven } from "../../cards/give";
import { Actor } from "../../cards/who";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { Dialog } from "../../ui/dialog";
import { useFresh } from "../../ui/every";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { Cards, Choice, of } from "../../ui/inputs";
import { Act, Head, Tabs } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";
import { table } from "../../own";

const over: Record<string, string> = table({
  cancelled: "taken back",
  declined: "declined by its recipient",
  gone: "over: its key or box is gone",
});

// State is whether a gift is of use: given and used, given and not of use now, or over.
function State(p: { of: Donation | ReceivedDonation }) {
  const d = p.of,
    why = "parked_why" in d ? over[d.parked_why ?? ""] : undefined;
  if (d.state === "parked")
    return (
      <>
        <Status of="ended" say={why ?? "over"} /> <Time at={d.parked_at} />
      </>
    );
  return d.serves ? <Status of="live" say="serves" /> : <Status of="waiting" say="not of use now" />;
}

const named = (m: DonationModel) => m.model;

export default function Gifts() {
  const tab = query().get("tab") ?? "given";
  return (
    <>
      <Head title="Gifts to open source" />
      <Tabs label="Which" all={["given", "received"]} at={tab} to={(t) => setQuery({ tab: t === "given" ? "" : t })} />
      {tab === "received" ? <Received /> : <Given />}
    </>
  );
}

function Given() {
  const [giving, give] = useState(false),
    from = useGiven();
  const list = useList<Donation>("given", (cursor, signal) => donationList({ cursor, per_page: 100 }, { signal }));
  useFresh(15, list);
  const name = (d: Donation) =>
    d.kind === "compute"
      ? from.boxes.find((b) => b.id === d.box_id)?.name
      : from.keys.find((k) => k.id === d.key_id)?.label;
  return (
    <>
      <p class="dim">
        A key or a box that is given serves nothing else until you take it back. Money is paid over your own key, up to
        an amount, and counts for your budgets.
      </p>
      <p>
        <button type="button" class="main" {...gate(donationCreate, () => give(true))}>
          Give something
        </button>
      </p>
      <Cards
        list={list}
        label="Gifts"
        empty="You have given nothing yet."
        row={(d) => (
          <>
            <div>
              <p>
                <strong>
                  {whats[d.kind]}
                  {name(d) && ` (${inert(name(d)!)})`}
                </strong>{" "}
                for {d.target === "pool" ? "every repository that takes gifts" : inert(d.target_repo_full_name ?? "")}
              </p>
              <p>
                <Used of={d} />
              </p>
              <p class="dim">
                given by <Actor of={d.given_by} /> <Time at={d.created_at} />
                {d.models && d.models.length > 0 && ` · only ${inert(d.models.map(named).join(", "))}`}
              </p>
            </div>
            <div class="acts">
              <State of={d} />
              {d.state === "active" && (
                <Act
                  call={donationCancel}
                  input={{ id: d.id }}
                  class="danger"
                  confirm="Take the gift back? No further call or run begins over it; one that is under way ends."
                  done={(o) => {
                    void list.load();
                    return o.parked ? "Taken back." : "It was over already.";
                  }}
                >
                  Take it back
                </Act>
              )}
            </div>
          </>
        )}
      />
      {giving && (
        <Dialog title="Give something" close={() => give(false)}>
          <Give
            from={from}
            done={() => {
              give(false);
              tell("Given. Thank you.");
              void list.load();
            }}
          />
        </Dialog>
      )}
    </>
  );
}

function Received() {
  const [open, set] = useState("");
  const list = useList<ReceivedDonation>("received", (cursor, signal) =>
    donationReceived({ cursor, per_page: 100 }, { signal }),
  );
  useFresh(15, list);
  const key = (m: DonationModel | null) => (m ? m.provider + " " + m.model : "");
  return (
    <>
      <p class="dim">
        What others gave to repositories of this organisation. What is used of it counts for none of your budgets. A
        repository takes gifts while it is public and its switch for them is on.
      </p>
      <Cards
        list={list}
        label="Gifts received"
        empty={
          <>
            Nothing yet. Turn gifts on in the settings of a public repository: <a href="/ui/repos">Repositories</a>
          </>
        }
        row={(d) => (
          <>
            <div>
              <p>
                <strong>
                  {whats[d.kind]} from {inert(d.donor)}
                </strong>{" "}
                for <a href={"/ui/repos/" + d.target_repo_full_name}>{inert(d.target_repo_full_name)}</a>
              </p>
              <p>
                <Used of={d} />
              </p>
              <p class="dim">
                given <Time at={d.created_at} />
                {d.kind !== "compute" &&
                  (d.model
                    ? ` · all calls go to ${inert(d.model.model)}`
                    : " · the model is what the template says, if it may be asked for")}
              </p>
              {open === d.id && (
                <Form
                  call={donationSetModel}
                  submit="Choose the model"
                  said="It holds from the next call on."
                  keep
                  done={() => {
                    set("");
                    void list.load();
                  }}
                  read={(f) => ({ id: d.id, model: d.ceiling.find((m) => key(m) === of(f, "model")) ?? null })}
                >
                  {(wrong) => (
                    <Choice
                      name="model"
                      label="Model"
                      hint="of those that the giver allows"
                      wrong={wrong}
                      value={key(d.model)}
                      all={[["", "what the template says"], ...d.ceiling.map((m) => [key(m), inert(m.model)] as const)]}
                    />
                  )}
                </Form>
              )}
            </div>
            <div class="acts">
              <State of={d} />
              {d.state === "active" && (
                <>
                  {d.kind === "llm" && (
                    <button
                      type="button"
                      aria-expanded={open === d.id}
                      {...gate(donationSetModel, () => set(open === d.id ? "" : d.id))}
                    >
                      Model
                    </button>
                  )}
                  <Act
                    call={donationDecline}
                    input={{ id: d.id }}
                    class="danger"
                    confirm={`Decline the gift of ${d.donor}? It ends as if they had taken it back.`}
                    done={(o) => {
                      void list.load();
                      return o.parked ? "Declined." : "It was over already.";
                    }}
                  >
                    Decline
                  </Act>
                </>
              )}
            </div>
          </>
        )}
      />
    </>
  );
}
