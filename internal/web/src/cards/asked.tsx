// Invitations that name who is signed in by login, and whether they are asked at all.
import { invitationAcceptMine, invitationJoiningSet, invitationMine } from "../client.gen";
import { useOne } from "../list";
import { load } from "../session";
import { inert } from "../ui/ansi";
import { Act, Coming } from "../ui/parts";
import { Time } from "../ui/time";

export function Asked() {
  const one = useOne("asked", (signal) => invitationMine({}, { signal })),
    v = one.value.value;
  return (
    <>
      <h2>Invitations</h2>
      {!v ? (
        <Coming of={one} />
      ) : (
        <>
          {v.data.length > 0 && (
            <ul class="cards" aria-label="Invitations">
              {v.data.map((i) => (
                <li key={i.id} class="item">
                  <div>
                    <p>
                      <strong>{inert(i.account)}</strong> <span class="dim">as {i.role}</span>
                    </p>
                    <p class="dim">
                      ends <Time at={i.expires_at} />
                    </p>
                  </div>
                  <div class="acts">
                    <Act
                      call={invitationAcceptMine}
                      input={{ invitationId: i.id }}
                      done={(o) => {
                        one.merge({ data: v.data.filter((x) => x.id !== i.id) });
                        void load();
                        return o.granted ? "You are a member now." : "It gives nothing any more.";
                      }}
                    >
                      Accept
                    </Act>
                  </div>
                </li>
              ))}
            </ul>
          )}
          <p class="dim">
            {v.at_once
              ? "Accounts that name your login make you a member without asking you."
              : "Accounts that name your login invite you, and you accept here."}
          </p>
          <Act
            call={invitationJoiningSet}
            input={{ at_once: !v.at_once }}
            done={(o) => {
              one.merge(o);
              return "Changed.";
            }}
          >
            {v.at_once ? "Ask me first" : "Do not ask me"}
          </Act>
        </>
      )}
    </>
  );
}
