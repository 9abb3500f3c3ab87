// New work: the dialog that files it comes when it is first wanted.
import { signal } from "@preact/signals";
import { taskCreate } from "../client.gen";
import { may } from "../session";
import { gate, lack } from "../ui/gate";
import { Late } from "../ui/late";
import { tell } from "../ui/toast";

const open = signal(false);

// openNewTask opens the dialog for whoever may file work; an ask needs the same scope.
export const openNewTask = () => {
  if (may(taskCreate)) open.value = true;
  else tell(lack(taskCreate) + ".");
};

// filing are the attributes of a button that does.
export const filing = () => gate(taskCreate, openNewTask);

export function NewTask() {
  return (
    <Late
      open={open.value}
      load={() => import("../cards/newtask").then((m) => m.NewWork)}
      close={() => {
        open.value = false;
      }}
    />
  );
}
