/* What a reader asks the master to do. Where it says no, its own sentence is shown: it tells who may. */
import { ApiError } from "../../api/client";
import { toast } from "./toasts";

/* Whether it was done. `done`: said then. */
export async function attempt(what: string, work: () => Promise<unknown>, done = ""): Promise<boolean> {
    try {
        await work();
    } catch (e) {
        if (!(e instanceof ApiError)) throw e;
        toast(`${what}: ${e.message}`, true);
        return false;
    }
    if (done) toast(done);
    return true;
}
