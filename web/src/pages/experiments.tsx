/* All experiments. */
import { useEffect, useState } from "preact/hooks";
import { call, type Messages } from "../api/client";

export function ExperimentsPage() {
    const [rows, setRows] = useState<Messages["experiment.v1.Experiment"][]>([]);
    useEffect(() => {
        const stop = new AbortController();
        call("GET /api/v1/experiments", { query: { limit: 100, orderBy: "ORDER_BY_DESC" }, signal: stop.signal })
            .then((r) => setRows(r.experiments), () => undefined);
        return () => stop.abort();
    }, []);
    return <>
        <h1>Experiments</h1>
        <table>
            <thead><tr><th scope="col">ID</th><th scope="col">Name</th><th scope="col">State</th></tr></thead>
            <tbody>{rows.map((e) => <tr key={e.id}><td>{e.id}</td><td>{e.name}</td><td>{e.state}</td></tr>)}</tbody>
        </table>
    </>;
}
