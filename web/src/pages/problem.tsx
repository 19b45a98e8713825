/* What could not be read, in the master's words. That it does not answer at all is told once, above the page. */
import type { ApiError } from "../api/client";

export function Problem({ error, what }: { error: ApiError | null; what: string }) {
    if (!error || error.status === 0 || error.status === 401) return null;
    return <p class="error" role="alert">{what} could not be read: {error.message}.</p>;
}
