/* The rungs of a halving search: who stands where, the best first, and who went on. */
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { count, number } from "../../ui/format";
import { Problem } from "../problem";

interface Place { trialId?: number; id?: number; metric?: number; wentOn?: boolean; promoted?: boolean }
type Bracket = Messages["SearchBracket"];

function Rung({ r, unit }: { r: Messages["SearchRung"]; unit: string }) {
    const places = r.trials as Place[];
    return <section class="panel" aria-label={`Rung ${r.rung}`}>
        <h3>Rung {r.rung}: {number(r.length)} {unit}</h3>
        <p class="soft">{count(r.validated, "trial")} validated, {r.wentOn} went on{r.training ? `, ${r.training} training` : ""}{r.toCome ? `, ${r.toCome} to come` : ""}</p>
        <ol>{places.map((p) => <li key={p.trialId ?? p.id}><a href={`/det/trials/${p.trialId ?? p.id}`}>trial {p.trialId ?? p.id}</a>{" "}
            {number(p.metric)} {p.wentOn || p.promoted ? <strong>↑ went on</strong> : ""}</li>)}</ol>
    </section>;
}

export function Rungs({ id, ended }: { id: string; ended: boolean }) {
    const live = useLive(`rungs ${id}`, String(ended), (signal) => call("GET /api/v1/experiments/{experimentId}/rungs",
        { path: { experimentId: id }, query: { limit: 100 }, signal }), () => (ended ? null : 2000));
    if (!live.data) return live.error ? <Problem error={live.error} what="The rungs" /> : <p class="soft">Asking…</p>;
    if (!live.data.brackets.length) return <p class="soft">This search compares no trials with each other: it has no rungs.</p>;
    return <>{live.data.brackets.map((b: Bracket) => <section key={b.bracket}>
        <h2>Bracket {b.bracket}: {b.made} of {count(b.maxTrials, "trial")} made</h2>
        <div class="pair">{b.rungs.map((r) => <Rung key={r.rung} r={r} unit={live.data!.unit} />)}</div>
    </section>)}</>;
}
