/* The slots of an agent in full: what each is and does, its GPU in figures, and a switch for one alone. */
import { call, type Messages } from "../../api/client";
import { may } from "../../state/may";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Grid, type Column } from "../../ui/table/grid";
import { bytes, number } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { duration } from "../../ui/words/time";
import { slotWords, type Owners } from "./data";

type Agent = Messages["agent.v1.Agent"];
type Slot = Messages["agent.v1.Slot"];
type Gpu = Messages["SlotGpu"];
interface SlotsProps { a: Agent; slots: Slot[]; owners: Owners; again: () => void }

const figure = (v: number | undefined, unit: string): string => (typeof v === "number" ? `${number(v)} ${unit}` : "");
const memory = ({ memoryUsedBytes: used, memoryTotalBytes: all }: Gpu): string => (typeof used === "number" ? `${bytes(used)}${typeof all === "number" ? ` of ${bytes(all)}` : ""}` : "");

/* What an agent without a GPU has nothing to say of is no column. */
function figures(slots: Slot[]): Column<Slot>[] {
    const all: Column<Slot>[] = [
        { head: "busy", cell: (s) => figure(s.gpu?.utilizationPercent, "%") }, { head: "memory", cell: (s) => (s.gpu ? memory(s.gpu) : "") },
        { head: "temperature", cell: (s) => figure(s.gpu?.temperatureCelsius, "°C") }, { head: "power", cell: (s) => figure(s.gpu?.powerWatts, "W") },
        { head: "no work for", cell: (s) => (s.gpu?.idleSeconds ? duration(s.gpu.idleSeconds) : "") },
    ];
    return all.filter((c) => slots.some((s) => c.cell(s) !== ""));
}

async function setEnabled(a: Agent, s: Slot, how: "on" | "off" | "drain"): Promise<void> {
    const path = { agentId: a.id, slotId: s.id }, name = `slot ${s.id} of ${shown(a.id)}`, command = `det slot ${how === "on" ? "enable" : "disable"} ${word(a.id)} ${word(s.id)}${how === "drain" ? " --drain" : ""}`;
    if (how === "on") {
        await attempt("Not enabled", () => call("POST /api/v1/agents/{agentId}/slots/{slotId}/enable", { path }));
        return;
    }
    const text = how === "drain" ? `Drain ${name}? What runs on it goes on to its end; nothing new starts there.` : `Switch ${name} off now? What runs on it is stopped, and goes on from its last checkpoint elsewhere.`;
    if (await confirm(text, how === "drain" ? "Drain" : "Switch off", command)) await attempt(how === "drain" ? "Not drained" : "Not switched off", () => call("POST /api/v1/agents/{agentId}/slots/{slotId}/disable", { path, body: { drain: how === "drain" } as never }));
}

function Switches({ a, s, again }: { a: Agent; s: Slot; again: () => void }) {
    const press = (how: "on" | "off" | "drain") => () => void setEnabled(a, s, how).then(again);
    return <>{(!s.enabled || s.draining) && <button type="button" aria-label={`Enable slot ${s.id}`} onClick={press("on")}>Enable</button>}
        {s.enabled && !s.draining && <button type="button" aria-label={`Drain slot ${s.id}`} onClick={press("drain")}>Drain</button>}
        {s.enabled && <button type="button" aria-label={`Switch off slot ${s.id}`} onClick={press("off")}>Switch off</button>}</>;
}

export function SlotTable({ a, slots, owners, again }: SlotsProps) {
    return <Grid hasFile name={`Slots of ${shown(a.id)}`} rows={slots} keyOf={(s) => s.id} none="It has no slot." columns={[
        { head: "slot", cell: (s) => s.id }, { head: "device", cell: (s) => s.device && <Name text={s.device.brand || s.device.type.replace("TYPE_", "")} /> },
        { head: "now", cell: (s) => <Name text={slotWords(s, a, owners).replace(/^.*?: /, "")} /> },
        ...figures(slots), ...(may("cluster") ? [{ head: "", cell: (s: Slot) => <Switches a={a} s={s} again={again} /> }] : []),
    ]} />;
}
