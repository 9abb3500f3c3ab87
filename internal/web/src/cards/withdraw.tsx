// Withdraw takes an invitation back.
import type { Call } from "../api";
import type { InvitationRevoked } from "../client.gen";
import { Act } from "../ui/parts";

export function Withdraw(p: { call: Call<{ invitationId: string }, InvitationRevoked>; id: string; done: () => void }) {
  return (
    <Act
      call={p.call}
      input={{ invitationId: p.id }}
      confirm="Withdraw it? The link stops working."
      done={() => {
        p.done();
        return "Withdrawn.";
      }}
    >
      Withdraw
    </Act>
  );
}
