// Arm is the form that lets agents repair a pull request again.
import { prRearmBabysit } from "../client.gen";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";

export function Arm(p: { id: string; focus?: boolean; done?: () => void }) {
  return (
    <Form
      call={prRearmBabysit}
      submit="Re-arm"
      said="Armed again. The next round begins soon."
      done={p.done}
      read={(f) => ({ id: p.id, reason: String(f.get("reason") ?? "") })}
    >
      {(wrong) => <Text name="reason" label="Reason" hint="goes to the audit log" wrong={wrong} focus={p.focus} />}
    </Form>
  );
}
