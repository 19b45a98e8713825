/* Asks the worker, which begins with the first question. Where a browser lets none begin, the page does the work itself. */
import { useEffect, useRef, useState } from "preact/hooks";
import { WORK, type Work } from "./table";

declare const WORKER: string | undefined; // its address; a test has none

interface Waiting { done: (answer: never) => void; failed: (why: unknown) => void; here: () => void }

let worker: Worker | null = null, lastId = 0, isLost = typeof WORKER === "undefined";
const waiting = new Map<number, Waiting>();

/* What it was asked is done here, and all that is asked from now on. */
function lose(): void {
    isLost = true;
    worker?.terminate();
    worker = null;
    const left = [...waiting.values()];
    waiting.clear();
    for (const w of left) {
        try {
            w.here();
        } catch (e) {
            w.failed(e); // e.g. memory is out: the others are done nevertheless
        }
    }
}

function begun(): Worker {
    if (worker) return worker;
    worker = new Worker(WORKER!);
    worker.onerror = (e) => {
        e.preventDefault();
        lose();
    };
    worker.onmessage = ({ data: { id, answer } }: MessageEvent<{ id: number; answer: never }>) => {
        waiting.get(id)?.done(answer);
        waiting.delete(id);
    };
    return worker;
}

export function work<K extends keyof Work>(what: K, of: Parameters<Work[K]>[0]): Promise<ReturnType<Work[K]>> {
    return new Promise((done, failed) => {
        const here = () => done(WORK[what](of as never) as ReturnType<Work[K]>), id = ++lastId;
        if (isLost) return here();
        waiting.set(id, { done: done as Waiting["done"], failed, here });
        try {
            begun().postMessage({ id, what, of });
        } catch {
            lose();
        }
    });
}

/* One question at a time: of those that come meanwhile the newest is next, and the others are let go of. */
export class Newest<J, A> {
    private next: J | null = null;
    private isBusy = false;
    private isOver = false;

    constructor(private readonly ask: (job: J) => Promise<A>, private readonly told: (job: J, answer: A) => void,
        private readonly failed: (job: J, why: string) => void = () => undefined) {}

    async put(job: J): Promise<void> {
        this.next = job;
        if (this.isBusy) return;
        this.isBusy = true;
        while (this.next !== null && !this.isOver) {
            const mine: J = this.next;
            this.next = null;
            try {
                const answer = await this.ask(mine);
                if (!this.isOver) this.told(mine, answer);
            } catch (e) {
                if (!this.isOver) this.failed(mine, (e as Error).message);
            }
        }
        this.isBusy = false;
    }

    end(): void {
        this.isOver = true;
    }
}

/* The newest job that is done, and what came of it; `failed` is told why one was not, and "" once one is. `job`: the same one as long as it says the same; null: there is none. */
export function useWork<J, A>(job: J | null, ask: (job: J) => Promise<A>, failed: (why: string) => void = () => undefined): { job: J; answer: A } | null {
    const [done, setDone] = useState<{ job: J; answer: A } | null>(null), newest = useRef<Newest<J, A> | null>(null);
    useEffect(() => {
        const mine = newest.current = new Newest(ask, (j, answer) => { failed(""); setDone({ job: j, answer }); }, (_, why) => failed(why));
        return () => mine.end();
    }, []);
    useEffect(() => {
        if (job !== null) void newest.current!.put(job);
        else setDone(null);
    }, [job]);
    return done;
}
