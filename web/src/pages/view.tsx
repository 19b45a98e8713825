/* A view by its number, as a link that somebody sent has it: leads to what it shows, and changes nothing of the reader's. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { navigate } from "../state/router";
import { isOurs, readView } from "../state/views";
import { Problem } from "./problem";

export function ViewPage({ id = "" }: Record<string, string>) {
    const [error, setError] = useState<ApiError | null>(null);
    useEffect(() => {
        const stop = new AbortController();
        const open = async () => {
            const { address } = await readView(id, stop.signal);
            if (isOurs(address)) navigate(address, true);
        };
        open().catch((e) => { if (e instanceof ApiError) setError(e); });
        return () => stop.abort();
    }, [id]);
    return error ? <><h1>A view</h1><Problem error={error} what="The view" /></> : <p class="soft">Opening the view…</p>;
}
