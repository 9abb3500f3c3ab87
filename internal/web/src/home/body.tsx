// The parts of Home that come after its figures.
export { WaitCard } from "./cards";
export { Beside, Rest } from "./rest";
