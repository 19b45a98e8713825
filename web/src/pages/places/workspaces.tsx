/* Workspaces: where projects are, and where roles are given. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { becomeHost, may } from "../../state/may";
import { isWhole } from "../../state/part";
import { navigate } from "../../state/router";
import { Cut } from "../../ui/table/cut";
import { FormDialog } from "../../ui/talk/dialog";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";
import { Problem } from "../problem";
import { WorkspaceActions } from "./actions";
import { askWorkspaces, LIVE_MS } from "./data";

function NewWorkspace({ close }: { close: () => void }) {
    const [name, setName] = useState("");
    const save = async () => {
        const { workspace } = await call("POST /api/v1/workspaces", { body: { name } });
        becomeHost();
        navigate(`/det/workspaces/${workspace.id}`);
    };
    return <FormDialog title="New workspace" button="Create" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
    </FormDialog>;
}

export function WorkspacesPage() {
    const live = useLive("workspaces", String(isWhole()), (signal) => askWorkspaces(isWhole(), signal), () => LIVE_MS), [isMaking, setMaking] = useState(false);
    return <>
        <div class="head"><h1>Workspaces</h1><span class="soft">{count(live.data?.total ?? 0, "workspace")}</span>
            <span class="row push">{may("found") && <button type="button" title="det workspace create NAME" onClick={() => setMaking(true)}>New workspace…</button>}</span></div>
        <Problem error={live.error} what="The workspaces" />
        <Cut part={live.data} one="workspace" />
        {live.data && <Grid hasFile name="Workspaces" rows={live.data.rows} keyOf={(w) => w.id} none="There is none." columns={[
            { head: "workspace", cell: (w) => <a href={`/det/workspaces/${w.id}`}><Name text={w.name} /></a> },
            { head: "projects", cell: (w) => w.numProjects }, { head: "experiments", cell: (w) => w.numExperiments }, { head: "owner", cell: (w) => <Name text={w.username} /> },
            { head: "state", cell: (w) => (w.archived ? "archived" : "open") },
            { head: "", cell: (w) => <WorkspaceActions w={w} again={live.again} gone={live.again} /> },
        ]} />}
        {isMaking && <NewWorkspace close={() => setMaking(false)} />}
    </>;
}
