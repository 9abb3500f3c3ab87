// What a control is that needs a scope which its user lacks: there, dimmed, and reached by
// Tab; whoever presses it is told the scope.
import { may } from "../session";
import { tell } from "./toast";

type Call = { scope: string };

export const keyless = "Needs an operator's key";
export const lack = (call: Call) => "Needs the scope " + call.scope;

// gate are the attributes of a button that leads to a call. without says in other words
// what is lacking.
export const gate = (call: Call, run: () => void, without = lack(call)) =>
  may(call) ? { onClick: run } : { "aria-disabled": true, title: without, onClick: () => tell(without + ".") };

// shut tells whether a button cannot be used, for whatever reason.
export const shut = (e: Element) => e.matches(":disabled, [aria-disabled=true]");
