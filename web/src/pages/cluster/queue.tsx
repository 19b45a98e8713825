/* The queue: each job with why it waits; in pools that keep an order a job is dragged to another place, or moved by keys. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { may } from "../../state/may";
import { query, setQuery } from "../../state/router";
import { number } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { State } from "../../ui/state";
import { ago, full } from "../../ui/words/time";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { toast } from "../../ui/talk/toasts";
import { canMove, moveBy, moved, moveTo, orderedPools, type Job, type Move, type Pool } from "./queue_data";
import { StandingDialog } from "./standing";
import { WhyLine } from "./why";

const HEADS = ["job", "state", "slots", "jobs ahead", "priority", "weight", "owner", "pool", "submitted"];
const NAME_MOST = 48, SIDE_MOST = 24; // letters: two lines of a row at most
const nameOf = (j: Job): string => `${shown(j.name)} #${j.entityId}`;

interface Drag { id: string; over: string | null }
/* What a grip tells: keys, and a pointer from its press to its release. */
interface Moving { drag: Drag | null; begin: (id: string) => void; to: (x: number, y: number) => void; drop: () => void; cancel: () => void; step: (id: string, by: -1 | 1) => void }

function jobAt(x: number, y: number): string | null {
    return document.elementFromPoint(x, y)?.closest<HTMLElement>("tr[data-job-id]")?.dataset["jobId"] ?? null;
}

/* A row that changes its place loses the focus: its grip gets it back. */
function useFocusKept(jobs: Job[]): (id: string) => void {
    const held = useRef("");
    useEffect(() => {
        if (held.current && document.activeElement === document.body)
            [...document.querySelectorAll<HTMLElement>("[data-grip]")].find((g) => g.dataset["grip"] === held.current)?.focus();
        held.current = ""; // who leaves it afterwards is left alone
    }, [jobs.map((j) => j.jobId).join()]);
    return (id) => { held.current = id; };
}

function useMoving(jobs: Job[], again: () => void): Moving {
    const [drag, setDrag] = useState<Drag | null>(null), isBusy = useRef(false), keep = useFocusKept(jobs);
    const go = async (move: Move | null) => {
        if (!move || isBusy.current) return;
        isBusy.current = true;
        keep(move.jobId);
        try {
            await call("POST /api/v1/job-queues", { body: { updates: [move] } });
            toast(moved(jobs, move, nameOf));
        } catch (e) {
            if (!(e instanceof ApiError)) throw e;
            toast(`Not moved: ${e.message}`, true);
        }
        isBusy.current = false;
        again();
    };
    return {
        drag, begin: (id) => setDrag({ id, over: null }), cancel: () => setDrag(null), step: (id, by) => void go(moveBy(jobs, id, by)),
        to: (x, y) => setDrag((d) => {
            const over = d && jobAt(x, y);
            return d && { ...d, over: over && moveTo(jobs, d.id, over) ? over : null };
        }),
        drop: () => {
            if (drag?.over) void go(moveTo(jobs, drag.id, drag.over));
            setDrag(null);
        },
    };
}

function Grip({ j, m }: { j: Job; m: Moving }) {
    const isHeld = m.drag?.id === j.jobId;
    const onKeyDown = (e: KeyboardEvent) => {
        const by = e.key === "ArrowUp" ? -1 : e.key === "ArrowDown" ? 1 : 0;
        if (e.key === "Escape" && isHeld) m.cancel();
        if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
        e.preventDefault();
        m.step(j.jobId, by);
    };
    const onDown = (e: PointerEvent) => {
        if (e.button !== 0) return;
        (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
        m.begin(j.jobId);
    };
    return <button type="button" class="plain grip" data-grip={j.jobId} title="Drag, or arrow keys: to another place in the queue"
        aria-label={`Move ${nameOf(j)}: arrow up or down`} onKeyDown={onKeyDown} onPointerDown={onDown}
        onPointerMove={(e) => isHeld && m.to(e.clientX, e.clientY)} onPointerUp={() => isHeld && m.drop()} onPointerCancel={m.cancel}>⠿</button>;
}

function classOf(jobs: Job[], j: Job, drag: Drag | null): string | undefined {
    if (drag?.id === j.jobId) return "held";
    if (!drag || drag.over !== j.jobId) return undefined;
    return moveTo(jobs, drag.id, drag.over)?.aheadOf ? "drop-above" : "drop-below";
}

/* It stops at its next boundary, and what it has is kept. */
async function cancel(j: Job, again: () => void): Promise<void> {
    if (!await confirm(`Cancel ${nameOf(j)}? What runs of it saves a checkpoint and ends; it leaves the queue.`, "Cancel it", `det experiment cancel ${j.entityId}`)) return;
    await attempt("Not cancelled", () => call("POST /api/v1/experiments/{id}/cancel", { path: { id: j.entityId } }));
    again();
}

interface RowProps { j: Job; jobs: Job[]; m: Moving; ordered: ReadonlySet<string>; again: () => void; edit: () => void }

function JobRow({ j, jobs, m, ordered, again, edit }: RowProps) {
    const state = j.isPaused ? "STATE_PAUSED" : j.summary?.state ?? "STATE_QUEUED", exp = j.type === "TYPE_EXPERIMENT", isOpen = query.value.get("why") === j.entityId;
    const of = { ownerId: j.userId, workspaceId: j.workspaceId }, isMine = may("operate", of);
    return <>
        <tr data-job={j.entityId} data-job-id={j.jobId} class={classOf(jobs, j, m.drag)}>
            <td class="text">{isMine && canMove(jobs, j, ordered) && <><Grip j={j} m={m} />{" "}</>}
                {exp ? <a href={`/det/experiments/${j.entityId}`}><Name text={j.name} most={NAME_MOST} /> #{j.entityId}</a> : <Name text={j.name} most={NAME_MOST} />}</td>
            <td data-label="state"><State state={state} /></td>
            <td data-label="slots">{j.isPaused ? "" : `${j.allocatedSlots} of ${j.requestedSlots}`}</td>
            <td data-label="jobs ahead">{!j.isPaused && j.summary && j.summary.jobsAhead > 0 ? j.summary.jobsAhead : ""}</td>
            <td data-label="priority">{j.priority}</td><td data-label="weight">{number(j.weight as number)}</td><td data-label="owner"><Name text={j.username} most={SIDE_MOST} /></td>
            <td data-label="pool"><Name text={j.resourcePool} most={SIDE_MOST} /></td>
            <td data-label="submitted" title={full(j.submissionTime)}>{ago(j.submissionTime, Date.now())}</td>
            <td><span class="row one-line"><button type="button" aria-expanded={isOpen} onClick={() => setQuery({ why: isOpen ? null : j.entityId })}>Why?</button>
                {exp && isMine && <button type="button" title={`det job update ${j.jobId}`} onClick={edit}>Change…</button>}
                {exp && isMine && <button type="button" title={`det experiment cancel ${j.entityId}`} onClick={() => void cancel(j, again)}>Cancel…</button>}</span></td>
        </tr>
        {isOpen && <tr><td colSpan={HEADS.length + 1}><WhyLine what="jobs" id={j.jobId} experiment={exp ? Number(j.entityId) : 0} of={of} again={again} isOpen /></td></tr>}
    </>;
}

export function Queue({ jobs, pools, again }: { jobs: Job[]; pools: Pool[]; again: () => void }) {
    const m = useMoving(jobs, again), [edited, setEdited] = useState<Job | null>(null), ordered = orderedPools(pools);
    if (!jobs.length) return <p class="soft">Nothing runs and nothing waits.</p>;
    return <><div class="wide"><table class="grid cards" aria-label="Queue">
        <thead><tr>{HEADS.map((t) => <th key={t} scope="col">{t}</th>)}<th scope="col"><span class="hidden">why</span></th></tr></thead>
        <tbody>{jobs.map((j) => <JobRow key={j.jobId} j={j} jobs={jobs} m={m} ordered={ordered} again={again} edit={() => setEdited(j)} />)}</tbody>
    </table></div>{edited && <StandingDialog j={edited} pools={pools} close={() => setEdited(null)} again={again} />}</>;
}
